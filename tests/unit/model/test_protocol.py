from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deltalakedb.errors import CorruptLog, ProtocolError
from deltalakedb.model.actions import Metadata, Protocol
from deltalakedb.model.protocol import (
    FEATURES,
    check_read,
    check_write,
    features,
    minimal,
    reader_features,
    required_for,
    supports,
    upgrade,
    validate_protocol,
)
from deltalakedb.model.schema import PrimitiveType, StructField, StructType, to_json


def protocol(reader, writer, reader_features=None, writer_features=None):
    return Protocol(
        min_reader_version=reader,
        min_writer_version=writer,
        reader_features=reader_features,
        writer_features=writer_features,
    )


def lists(*names):
    """Reader 3, writer 7, with these features."""
    both = tuple(name for name in names if name not in FEATURES or FEATURES[name].reader)
    return protocol(3, 7, both, names)


def metadata(kind="long", column=None, **properties):
    schema = StructType((StructField("c", PrimitiveType(kind), True, column or {}),))
    given = {key.replace("_", "."): value for key, value in properties.items()}
    return Metadata(id="1", schema_string=to_json(schema), configuration=given)


LEGACY = [feature.name for feature in FEATURES.values() if feature.writer < 7]

# -- features ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ((1, 1), ""),
        ((1, 2), "appendOnly invariants"),
        ((1, 3), "appendOnly invariants checkConstraints"),
        ((1, 4), "appendOnly invariants checkConstraints changeDataFeed generatedColumns"),
        ((1, 5), "appendOnly invariants checkConstraints changeDataFeed generatedColumns"),
        ((2, 6), " ".join(LEGACY)),
    ],
)
def test_legacy_versions_stand_for_features(versions, expected):
    assert features(protocol(*versions)) == set(expected.split())


def test_feature_lists_are_taken_as_they_are():
    assert features(lists("deletionVectors", "nobodyKnows")) == {"deletionVectors", "nobodyKnows"}
    assert features(protocol(1, 7, None, ("rowTracking",))) == {"rowTracking"}
    assert reader_features(protocol(1, 7, None, ("rowTracking",))) == set()
    assert reader_features(protocol(2, 7, None, ("columnMapping",))) == {"columnMapping"}


def test_a_preview_counts_as_the_feature():
    assert supports(lists("typeWidening-preview"), "typeWidening")
    assert not supports(lists("typeWidening"), "typeWidening-preview")


def test_the_registry_is_closed():
    for feature in FEATURES.values():
        assert set(feature.requires) <= FEATURES.keys()
        assert feature.stands_for is None or feature.stands_for in FEATURES
        assert feature.reads != "nothing" or not feature.writes
        assert feature.reads == "rows" or feature.reader == 3


# -- validity ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "valid",
    [
        protocol(1, 1),
        protocol(1, 2),
        protocol(2, 5),
        protocol(1, 7, None, ()),
        protocol(2, 7, None, ("columnMapping",)),
        protocol(3, 7, (), ()),
        protocol(1, 2, (), ()),
        protocol(99, 7, (), ()),
        lists("deletionVectors", "appendOnly"),
    ],
)
def test_valid_protocols(valid):
    validate_protocol(valid)


@pytest.mark.parametrize(
    ("invalid", "reason"),
    [
        (protocol(0, 2), "start at 1"),
        (protocol(3, 6, ()), "needs writer version 7"),
        (protocol(3, 7, None, ()), "needs readerFeatures"),
        (protocol(3, 7, (), None), "needs writerFeatures"),
        (protocol(2, 7, ("columnMapping",), ("columnMapping",)), "exist at 3 only"),
        (protocol(1, 2, None, ("appendOnly",)), "exist at 7 only"),
        (protocol(3, 7, ("deletionVectors",), ()), "not writer features: deletionVectors"),
    ],
)
def test_protocols_that_contradict_themselves(invalid, reason):
    with pytest.raises(CorruptLog, match=reason) as caught:
        validate_protocol(invalid, version=3)
    assert caught.value.version == 3


# -- what this build can do --------------------------------------------------------------------


def test_the_log_of_every_known_feature_opens():
    for feature in FEATURES.values():
        found = lists(feature.name)
        if feature.reads == "nothing":
            with pytest.raises(ProtocolError):
                check_read(found, level="log")
        else:
            check_read(found, level="log")


def test_rows_need_more_than_the_log():
    with pytest.raises(ProtocolError, match="rows deleted by bitmaps") as caught:
        check_read(lists("deletionVectors", "timestampNtz", "geospatial"), table="t")
    assert caught.value.missing == ("deletionVectors", "geospatial")
    assert (caught.value.operation, caught.value.table) == ("read", "t")


def test_unknown_features_are_refused_by_name():
    for level in ("log", "rows"):
        with pytest.raises(ProtocolError, match="nobodyKnows") as caught:
            check_read(lists("nobodyKnows", "timestampNtz"), level=level)
        assert caught.value.missing == ("nobodyKnows",)


def test_unknown_writer_features_do_not_concern_readers():
    found = protocol(1, 7, None, ("nobodyKnows",))
    check_read(found)
    with pytest.raises(ProtocolError) as caught:
        check_write(found)
    assert (caught.value.missing, caught.value.operation) == (("nobodyKnows",), "write")


def test_versions_beyond_this_build():
    with pytest.raises(ProtocolError, match="reader version 99"):
        check_read(protocol(99, 7, (), ()), level="log")
    check_read(protocol(1, 8))
    with pytest.raises(ProtocolError, match="writer version 8"):
        check_write(protocol(1, 8))


def test_writing_needs_every_feature():
    check_write(protocol(1, 2))
    check_write(protocol(2, 5))
    check_write(lists("timestampNtz", "columnMapping", "rowTracking", "domainMetadata"))
    with pytest.raises(ProtocolError) as caught:
        check_write(protocol(1, 7, None, ("clustering", "domainMetadata")))
    assert caught.value.missing == ("clustering",)


def test_a_feature_that_nothing_uses_is_no_obstacle():
    with pytest.raises(ProtocolError):
        check_write(protocol(1, 6))
    check_write(protocol(1, 6), metadata=metadata())
    used = metadata(column={"delta.identity.start": 1, "delta.identity.step": 1})
    with pytest.raises(ProtocolError, match="identityColumns"):
        check_write(protocol(1, 6), metadata=used)


# -- what a table needs ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "names"),
    [
        (metadata(), ""),
        (metadata(delta_appendOnly="TRUE"), "appendOnly"),
        (metadata(delta_appendOnly="false"), ""),
        (metadata(delta_constraints_positive="c > 0"), "checkConstraints"),
        (metadata(delta_enableChangeDataFeed="true"), "changeDataFeed"),
        (metadata(delta_columnMapping_mode="name"), "columnMapping"),
        (metadata(delta_columnMapping_mode="none"), ""),
        (metadata(delta_enableDeletionVectors="true"), "deletionVectors"),
        (metadata(delta_enableRowTracking="true"), "rowTracking domainMetadata"),
        (metadata(delta_enableInCommitTimestamps="true"), "inCommitTimestamp"),
        (metadata(delta_checkpointPolicy="v2"), "v2Checkpoint"),
        (metadata(delta_checkpointPolicy="classic"), ""),
        (metadata(delta_enableTypeWidening="true"), "typeWidening"),
        (
            metadata(delta_enableIcebergCompatV3="true"),
            "icebergCompatV3 columnMapping rowTracking domainMetadata",
        ),
        (metadata(delta_enableVariantShredding="true"), "variantShredding variantType"),
        (metadata(delta_feature_DeletionVectors="supported"), "deletionVectors"),
        (metadata(kind="timestamp_ntz"), "timestampNtz"),
        (metadata(kind="variant"), "variantType"),
        (metadata(kind="geography(OGC:CRS84, spherical)"), "geospatial"),
        (metadata(column={"delta.generationExpression": "1"}), "generatedColumns"),
        (metadata(column={"delta.invariants": "{}"}), "invariants"),
        (metadata(column={"delta.identity.start": 1}), "identityColumns"),
        (metadata(column={"CURRENT_DEFAULT": "1"}), "allowColumnDefaults"),
        (metadata(column={"delta.typeChanges": []}), "typeWidening"),
        (metadata(column={"__COLLATIONS": {}}), "collations domainMetadata"),
    ],
)
def test_schema_and_properties_make_features_necessary(needs, names):
    assert required_for(needs) == set(names.split())


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        (metadata(), protocol(1, 2)),
        (metadata(delta_appendOnly="true"), protocol(1, 2)),
        (metadata(delta_constraints_x="c > 0"), protocol(1, 3)),
        (metadata(column={"delta.generationExpression": "1"}), protocol(1, 4)),
        (metadata(delta_columnMapping_mode="id"), protocol(2, 5)),
        (
            metadata(kind="timestamp_ntz"),
            protocol(3, 7, ("timestampNtz",), ("appendOnly", "invariants", "timestampNtz")),
        ),
        (
            metadata(delta_enableRowTracking="true"),
            protocol(1, 7, None, ("appendOnly", "invariants", "domainMetadata", "rowTracking")),
        ),
        (
            metadata(delta_columnMapping_mode="name", delta_enableInCommitTimestamps="true"),
            protocol(
                2, 7, None, ("appendOnly", "invariants", "columnMapping", "inCommitTimestamp")
            ),
        ),
    ],
)
def test_new_tables_get_the_lowest_protocol(needs, expected):
    assert minimal(needs) == expected


def test_raising_lists_every_legacy_feature():
    assert upgrade(protocol(2, 5), ["deletionVectors"]) == protocol(
        3,
        7,
        ("columnMapping", "deletionVectors"),
        (
            *("appendOnly", "changeDataFeed", "checkConstraints", "columnMapping"),
            *("generatedColumns", "invariants", "deletionVectors"),
        ),
    )


def test_raising_keeps_what_is_there():
    old = lists("deletionVectors", "nobodyKnows", "typeWidening-preview")
    assert upgrade(old, ["deletionVectors", "typeWidening"]) is old
    new = upgrade(old, ["clustering"])
    assert new.writer_features == (*old.writer_features, "clustering", "domainMetadata")
    assert new.reader_features == old.reader_features
    with pytest.raises(ProtocolError, match="newer"):
        upgrade(old, ["newer"])


@given(
    st.sampled_from([protocol(1, 1), protocol(1, 2), protocol(2, 5), protocol(1, 7, None, ())]),
    st.lists(st.sampled_from(sorted(FEATURES)), max_size=4),
    st.lists(st.sampled_from(sorted(FEATURES)), max_size=4),
)
def test_upgrades_are_valid_and_only_add(old, first, second):
    one = upgrade(old, first)
    two = upgrade(one, second)
    validate_protocol(two)
    assert features(old) <= features(one) <= features(two)
    assert all(supports(two, name) for name in (*first, *second))
    assert upgrade(two, [*first, *second]) is two
