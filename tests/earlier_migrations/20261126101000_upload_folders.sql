-- Two files of one name in different folders of an archive are two documents: where a file lay in its batch is part of
-- what it is recognised by when it comes again.
ALTER TABLE documents ADD COLUMN upload_folder text NOT NULL DEFAULT '';
COMMENT ON COLUMN documents.upload_folder IS
    'Folders of the file within its archive or folder, without those that all of its files share; empty for a single file.';
