"""Read the text in pictures with RapidOCR and the models in its package, in a confined process.

The process only runs while there are scans, because the models need half a gigabyte.
"""

from __future__ import annotations

import io
import math
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, median_low
from typing import Any, BinaryIO

import cv2
import numpy
import rapidocr
from PIL import Image, UnidentifiedImageError
from rapidocr.utils.process_img import get_rotate_crop_image

from rag.errors import FileDamaged
from rag.ingestion.loaders.page_tables import MOST_SEGMENTS, RulingLines, Word
from rag.ingestion.loaders.pdf_objects import Box
from rag.ingestion.loaders.reading_order import arranged, with_spaces
from rag.ingestion.loaders.sandbox_tasks import serve_tasks
from rag.ingestion.loaders.values import ExtractionLimits
from rag.sandbox.child_process import Reply, answers_to_parent, bound_child, write_message

#: The package's files, given by name: RapidOCR would download others.
MODELS = Path(rapidocr.__file__).parent / "models"
DETECTION, RECOGNITION = MODELS / "PP-OCRv6_det_small.onnx", MODELS / "PP-OCRv6_rec_small.onnx"
#: The picture's longer side in pixels for finding lines and for reading them. Doubling the first finds no more lines,
#: and doubles time and memory.
SOUGHT_IN, READ_IN = 1280, 3400
#: A line with less certainty may be wrong. Print has 0.95 and more, letters unknown to the model 0.6 to 0.87.
SURE = 0.88
#: A line this many times as wide as high has more than a few letters; fewer letters mean an unknown script.
LONG, FEWEST_CHARACTERS, CHARACTERS_TO_WIDTH = 6.0, 3, 0.08
#: A page with less certainty may be upside down.
MAYBE_TURNED = 0.8
#: Two numbers without a gap, such as "1,121.501,221.50".
JOINED_NUMBERS = re.compile(r"\d\.\d+,\d+\.\d|\d,\d+\.\d+,\d")
#: A page with a smaller slope is level.
LEVEL = 0.001
#: Ruling lines, in heights of a text line: the smallest length across, the smallest height, the largest thickness.
LONGER_THAN_DASHES, TALLER_THAN_TEXT, THIN = 2.5, 1.4, 0.35
#: The least contrast between a ruling line and the paper, from 0 to 255.
CONTRAST = 40


@dataclass(frozen=True)
class FoundLine:
    """A line found in an image: text, four corners in pixels from the top left, and certainty."""

    text: str
    corners: tuple[tuple[float, float], ...]
    certainty: float

    @property
    def width(self) -> float:
        return math.dist(self.corners[0], self.corners[1])

    @property
    def height(self) -> float:
        return math.dist(self.corners[0], self.corners[3])

    @property
    def is_sure(self) -> bool:
        characters = sum(character.isalnum() for character in self.text)
        proportion = self.width / max(self.height, 1.0)
        has_few = proportion > LONG and characters < max(FEWEST_CHARACTERS, CHARACTERS_TO_WIDTH * proportion)
        return self.certainty >= SURE and not has_few


@dataclass(frozen=True)
class ReadPicture:
    """An image's text lines (`lines`), the words in them, and the straight lines drawn on the page (`rules`).

    `quarter_turns` is how often the image was rotated left by 90° for reading; `size` is the rotated image's width and
    height in pixels. `lines` have pixel positions from the top left of the rotated image. Words and drawn lines have
    positions on the straightened page, where y grows upwards.
    """

    lines: list[FoundLine]
    words: list[Word]
    rules: RulingLines
    quarter_turns: int
    size: tuple[int, int]

    def box_of(self, lines: Sequence[FoundLine]) -> Box:
        """Return the box around lines, in fractions (0 to 1) for the unrotated image: left, top, right, bottom."""
        corners = [corner for line in lines for corner in line.corners]
        points = [(x / self.size[0], y / self.size[1]) for x, y in corners]
        for _ in range(self.quarter_turns):
            points = [(1 - y, x) for x, y in points]
        xs, ys = zip(*points, strict=True)
        left, top, right, bottom = (min(max(edge, 0.0), 1.0) for edge in (min(xs), min(ys), max(xs), max(ys)))
        return round(left, 4), round(top, 4), round(right, 4), round(bottom, 4)


NO_RULES = RulingLines((), ())


class Reader:
    """Finds lines of text in images, and recognises their text."""

    def __init__(self) -> None:
        self._engine = rapidocr.RapidOCR(
            params={
                "Global.use_cls": False,  # it turns some lines in small pictures upside down
                "Global.log_level": "critical",
                "Global.max_side_len": READ_IN,
                "Global.return_word_box": True,  # the places of the letters
                "Det.model_path": str(DETECTION),
                "Det.limit_type": "max",
                "Det.limit_side_len": SOUGHT_IN,
                "Rec.model_path": str(RECOGNITION),
                "Rec.rec_batch_num": 1,
                "EngineConfig.onnxruntime.intra_op_num_threads": 1,
                "EngineConfig.onnxruntime.inter_op_num_threads": 1,
            }
        )

    def load(self) -> None:
        """Use all libraries, because they open files at first use. Once the process is confined, files cannot be
        opened.
        """
        blank = numpy.full((64, 256, 3), 255, numpy.uint8)
        self._boxes(blank)
        self._engine.recognize_txt([blank])
        Image.init()

    def read(self, picture: Image.Image) -> ReadPicture:
        """Recognise the text in an image, even if the image lies on its side or upside down."""
        image = numpy.asarray(picture.convert("RGB"))[:, :, ::-1].copy()
        boxes, quarter_turns = self._boxes(image), 0
        if _is_sideways(boxes):
            image, quarter_turns = numpy.rot90(image).copy(), 1
            boxes = self._boxes(image)
        lines = self._lines(image, boxes)
        if lines and _certainty(lines) < MAYBE_TURNED:
            turned = numpy.rot90(image, 2).copy()
            other = self._lines(turned, self._boxes(turned))
            if other and _certainty(other) > _certainty(lines):
                image, lines, quarter_turns = turned, other, quarter_turns + 2
        read = [line for line in lines if line.text]
        slope = _slope_of(read)
        size = image.shape[1], image.shape[0]
        return ReadPicture(lines, _straightened_words(read, slope), rules_in(image, slope, read), quarter_turns, size)

    def _boxes(self, image: Any) -> list[Any]:
        result = self._engine(image, use_det=True, use_cls=False, use_rec=False)
        boxes = getattr(result, "boxes", None)
        return [] if boxes is None else list(boxes)

    def _lines(self, image: Any, boxes: list[Any]) -> list[FoundLine]:
        if not boxes:
            return []
        crops = [get_rotate_crop_image(image, box.astype(numpy.float32)) for box in boxes]
        read: Any = self._engine.recognize_txt(crops)
        texts = [
            with_spaces(text, result.words, result.word_cols) if text.strip() else ""
            for text, result in zip(read.txts or (), read.word_results, strict=True)
        ]
        return [
            FoundLine(text.strip(), tuple((float(x), float(y)) for x, y in box), float(score) if text.strip() else 0.0)
            for text, score, box in zip(texts, read.scores or (), boxes, strict=True)
        ]


def _is_sideways(boxes: list[Any]) -> bool:
    across = up = 0.0
    for box in boxes:
        width, height = math.dist(box[0], box[1]), math.dist(box[0], box[3])
        across += width if width >= height else 0.0
        up += height if height > 1.5 * width else 0.0
    return up > across


def _certainty(lines: list[FoundLine]) -> float:
    """Return the lines' mean certainty, weighted by width: 0 to 1."""
    total_width = sum(line.width for line in lines)
    return (
        sum(line.certainty * line.width for line in lines if line.is_sure or line.text) / total_width
        if total_width
        else 0.0
    )


def summary_of(picture: ReadPicture) -> dict[str, Any]:
    """Return an image's text in reading order, the numbers of unread and uncertain lines, and boxes around lines and
    tables.
    """
    lines = picture.lines
    unread = [line for line in lines if not line.text]
    unsure = [line for line in lines if line.text and not line.is_sure]
    joined = [line for line in lines if line.is_sure and JOINED_NUMBERS.search(line.text) is not None]
    total_width = sum(line.width for line in lines)
    text = arranged(picture.words, picture.rules)
    read = [line for line in lines if line.text]
    uncertain = {id(line) for line in (*unsure, *joined)}
    in_tables = frozenset[int]().union(*text.tables)
    marks = [
        *(("table", [read[place] for place in sorted(places)]) for places in text.tables),
        *(("unsure", [line]) for line in (*unsure, *joined)),
        *(("line", [line]) for at, line in enumerate(read) if id(line) not in uncertain and at not in in_tables),
        *(("left out", [line]) for line in unread),
    ]
    return {
        "text": text.text,
        "lines": len(lines),
        "unread": len(unread),
        "unsure": len(unsure) + len(joined),
        "doubt": sum(line.width for line in (*unread, *unsure)) / total_width if total_width else 0.0,
        "marks": [[kind, *picture.box_of(marked_lines)] for kind, marked_lines in marks],
    }


def _slope_of(lines: list[FoundLine]) -> float:
    # The longest line has the most reliable slope; the median over the longer half tolerates a wrong line.
    longer = sorted(lines, key=lambda line: -line.width)[: (len(lines) + 1) // 2]
    return median_low(_slope(line) for line in longer) if longer else 0.0


def _straightened_words(lines: list[FoundLine], slope: float) -> list[Word]:
    cosine, sine = math.cos(slope), math.sin(slope)
    words = []
    for line in lines:
        xs = [x * cosine + y * sine for x, y in line.corners]
        ys = [x * sine - y * cosine for x, y in line.corners]
        words.append(Word(line.text, (min(xs), min(ys), max(xs), max(ys))))
    return words


def rules_in(image: Any, slope: float, lines: list[FoundLine]) -> RulingLines:
    """Find the lines drawn in a page's image, for example table borders.

    Positions are on the straightened page, with y upwards.
    """
    if not lines:
        return NO_RULES
    height = median(line.height for line in lines)
    grey = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
    if abs(slope) > LEVEL:
        cosine, sine = math.cos(slope), math.sin(slope)
        turned = numpy.array([[cosine, sine, 0.0], [-sine, cosine, 0.0]])
        grey = cv2.warpAffine(grey, turned, grey.shape[::-1], borderValue=(255,))
    thick = max(3, round(THIN * height))
    # The edge of a coloured background is no thin stroke.
    thin = numpy.maximum(
        *(cv2.morphologyEx(grey, cv2.MORPH_BLACKHAT, _kernel(*size)) for size in ((1, thick), (thick, 1)))
    )
    ink = (thin > CONTRAST).astype(numpy.uint8)
    across = _strokes(ink, round(LONGER_THAN_DASHES * height), 1)
    upright = _strokes(ink, 1, round(TALLER_THAN_TEXT * height))
    return RulingLines(
        tuple((-(y + high / 2), float(x), float(x + wide)) for x, y, wide, high in across if high < wide),
        tuple((x + wide / 2, -float(y + high), -float(y)) for x, y, wide, high in upright if wide < high),
    )


def _kernel(width: int, height: int) -> Any:
    return cv2.getStructuringElement(cv2.MORPH_RECT, (width, height))


def _strokes(ink: Any, width: int, height: int) -> list[tuple[int, int, int, int]]:
    """Return the boxes (left, top, width, height) around strokes with at least this width and height in pixels."""
    count, _, boxes, _ = cv2.connectedComponentsWithStats(cv2.morphologyEx(ink, cv2.MORPH_OPEN, _kernel(width, height)))
    return [(int(x), int(y), int(wide), int(high)) for x, y, wide, high, _ in boxes[1:count][:MOST_SEGMENTS]]


def _slope(line: FoundLine) -> float:
    (left, top), (right, bottom) = line.corners[:2]
    return math.atan2(bottom - top, right - left)


def main(memory_mb: int, order: str) -> None:
    """Serve tasks until stdin ends."""
    answers = answers_to_parent()
    cv2.setNumThreads(1)
    reader = Reader()
    reader.load()

    def perform(task: Reply, limits: ExtractionLimits, answers: BinaryIO) -> tuple[dict[str, Any], bytes]:
        try:
            with Image.open(io.BytesIO(task.blob), formats=("PNG",)) as picture:
                return summary_of(reader.read(picture)), b""
        except (UnidentifiedImageError, OSError, SyntaxError, Image.DecompressionBombError) as exc:
            raise FileDamaged from exc

    write_message(answers, "means", bound_child(order, memory_mb))
    serve_tasks(answers, perform)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
