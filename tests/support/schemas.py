"""Hypothesis strategies for Delta schemas."""

from __future__ import annotations

from hypothesis import strategies as st

from deltalakedb.model.schema import (
    PRIMITIVES,
    ArrayType,
    DataType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
names = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)
decimals = st.integers(1, 38).flatmap(
    lambda p: st.integers(0, p).map(lambda s: PrimitiveType(f"decimal({p},{s})"))
)
primitive_types = st.sampled_from(sorted(PRIMITIVES)).map(PrimitiveType) | decimals
foreign_types = st.sampled_from(["geometry(OGC:CRS84)", "void", "x y"]).map(PrimitiveType)


def structs(types: st.SearchStrategy[DataType]) -> st.SearchStrategy[StructType]:
    """Structs with fields of these types, of different names."""
    metadata = st.dictionaries(names, json_values, max_size=2)
    field = st.builds(StructField, names, types, st.booleans(), metadata)
    fields = st.lists(field, min_size=1, max_size=4, unique_by=lambda f: f.name.lower())
    return fields.map(lambda made: StructType(tuple(made)))


def nested(leaves: st.SearchStrategy[PrimitiveType]) -> st.SearchStrategy[DataType]:
    """Types with these leaves."""
    return st.recursive(
        leaves,
        lambda inner: (
            structs(inner)
            | st.builds(ArrayType, inner, st.booleans())
            | st.builds(MapType, inner, inner, st.booleans())
        ),
        max_leaves=8,
    )


schemas = structs(nested(primitive_types))
foreign_schemas = structs(nested(primitive_types | foreign_types))
