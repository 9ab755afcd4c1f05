-- A company's mark, as a small PNG of our own making, beside its name

ALTER TABLE tenants ADD COLUMN mark bytea CHECK (octet_length(mark) <= 200000);
GRANT UPDATE (mark) ON tenants TO rag_app;
