-- Reference documents that are only registered: their text, chunks, tags and vectors come step by step.

ALTER TABLE documents DROP CONSTRAINT documents_status_check;
ALTER TABLE documents ADD CONSTRAINT documents_status_check
    CHECK (status IN ('registered', 'reading', 'estimated', 'processing', 'completed', 'needs_ocr', 'failed',
                      'superseded'));
