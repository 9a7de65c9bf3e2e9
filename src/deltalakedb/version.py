"""The version of this build, as it appears in commits."""

__version__ = "0.1.0"
ENGINE_INFO = f"deltalakedb/{__version__}"
