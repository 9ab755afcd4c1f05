-- Text recognition as a step of its own, and what kind of PDF a document was said to be.

ALTER TABLE documents DROP CONSTRAINT documents_step_check;
ALTER TABLE documents ADD CONSTRAINT documents_step_check
    CHECK (step IN ('extract', 'recognise', 'chunk', 'embed', 'tag', 'publish'));

ALTER TABLE documents
    -- scanned: text is recognised on every page; digital: on none; auto: on pages that show something and have no text.
    ADD COLUMN pdf_type text NOT NULL DEFAULT 'auto' CHECK (pdf_type IN ('scanned', 'digital', 'auto')),
    -- Pages whose text is still to be recognised: each leaves in the transaction that stores its text and its bill.
    ADD COLUMN ocr_pages integer[] NOT NULL DEFAULT '{}';
