"""Small Hangul documents, for tests of all formats."""

from __future__ import annotations

from tests.integrations.formats.hangul.hangul_files import hwp, hwpx, paragraph

SAMPLES = {"hwp": hwp("연차휴가는 25일이다."), "hwpx": hwpx(paragraph("연차휴가는 25일이다."))}
BLANK = {"hwp": hwp(""), "hwpx": hwpx(paragraph(""))}
PROTECTED = {"hwp": hwp("글", properties=1 | 2)}
