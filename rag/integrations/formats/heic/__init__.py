"""Read pictures from phones (.heic): `picture` prepares Pillow for them."""

from rag.integrations.integration import Integration

INTEGRATION = Integration(
    name="heic",
    title="HEIC",
    packages=("pi-heif",),
    formats=f"{__name__}.format:FORMATS",
)
