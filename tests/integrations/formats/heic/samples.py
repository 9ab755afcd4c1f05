"""A picture from a phone, for tests of all formats."""

from __future__ import annotations

from pathlib import Path

#: Made with pillow-heif, which encodes: a picture that was taken upright.
TURNED = (Path(__file__).parent / "turned.heic").read_bytes()
SAMPLES = {"heic": TURNED}
