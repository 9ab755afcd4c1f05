-- Large collections compare passages by meaning in two steps, as chunk_bits does for the vectors of providers: a few bits for
-- each dimension are scanned, and the nearest are compared exactly.

-- Three bits for each of 384 dimensions: whether it is above what is usual of the model, and above that by a little less
-- and a little more. All of the model's vectors point the same way (length of their mean 0.88), so that bare signs say
-- little: among 1,144 English passages the ten nearest are within the first 80 by signs for 0.70, by signs after taking
-- the mean away for 0.85, and so for 0.96. The mean is that of passages in six languages; it need not be anybody's own.
CREATE FUNCTION rag_meaning_bits(embedding extensions.halfvec) RETURNS bit(1152)
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp AS $$
    SELECT extensions.binary_quantize(usual.above OPERATOR(extensions.||) (usual.above OPERATOR(extensions.-) usual.step)
               OPERATOR(extensions.||) (usual.above OPERATOR(extensions.+) usual.step))::bit(1152)
    FROM (SELECT embedding OPERATOR(extensions.-) (
        '[.046,-.024,-.042,-.056,.067,-.058,.014,.042,.056,.008,.046,.014,.057,-.019,-.062,.041,.057,-.031,-.031,-.047,'
        '.022,-.002,-.045,.049,.054,.052,-.029,.028,.048,-.053,-.054,-.053,.033,-.062,.066,.028,-.052,-.045,.046,-.055,'
        '-.008,.026,.036,.062,.031,.055,-.032,.037,-.035,-.030,-.017,.055,.021,.040,.032,-.060,-.055,-.054,-.061,.052,'
        '.045,-.004,.019,.025,.070,.050,.040,.042,-.037,-.029,-.045,.055,.004,-.029,.014,.021,.034,-.038,.027,-.038,'
        '-.056,-.040,-.032,.030,-.051,.064,.054,-.056,.059,-.009,.054,.035,-.054,-.046,-.060,-.058,-.027,.047,.053,-.036,'
        '.061,-.054,.030,-.055,-.044,.036,.019,-.061,.051,-.057,-.048,.039,.047,.048,-.053,-.031,.003,-.047,.033,-.040,'
        '.051,-.030,-.052,-.058,-.047,-.040,.039,.030,.017,.002,.039,.027,.009,.040,.041,.069,-.066,.007,-.023,-.020,'
        '-.052,.030,-.045,.056,.040,.053,.066,-.034,.065,-.050,.028,-.020,.056,.033,.045,-.025,-.040,-.040,.051,.055,'
        '-.038,-.059,-.054,-.039,-.056,-.030,.035,.055,-.048,-.040,-.026,.054,-.032,.041,-.003,.069,-.047,.020,.077,.041,'
        '-.024,-.026,-.061,-.046,-.062,-.036,-.044,.022,.016,-.024,.007,.039,-.044,-.062,-.038,.022,-.051,.038,.044,.040,'
        '.004,-.032,.044,.032,.036,-.002,-.053,.047,-.048,.043,.044,-.067,-.045,.053,-.040,-.020,-.009,.047,-.056,.032,'
        '.033,-.023,.045,-.097,-.035,.043,.040,-.028,-.041,.045,-.055,-.032,-.049,-.068,-.047,-.071,-.017,.047,.028,'
        '-.065,-.028,-.043,.031,-.072,.053,-.035,-.026,.036,-.019,.035,.043,-.063,-.048,-.062,-.041,.045,.061,.073,-.051,'
        '.030,.013,-.029,.097,.044,.046,.020,-.039,-.019,-.057,-.013,-.055,.015,.045,-.031,-.036,-.038,.027,.073,-.038,'
        '-.038,.049,.033,.049,.050,.036,-.019,-.029,.048,-.037,-.028,-.022,-.040,.054,-.052,.068,.024,.002,.074,-.044,'
        '.035,-.007,-.047,.025,.030,-.076,.030,-.001,.006,.025,.038,.057,.036,-.044,-.022,.042,.054,-.002,.049,-.060,'
        '-.062,-.047,-.051,-.020,-.053,.041,.054,-.046,-.032,.046,.013,.029,-.040,-.043,.051,-.051,-.040,-.039,.052,'
        '-.045,-.050,.037,.064,-.048,.048,-.025,-.064,.040,-.036,-.050,.022,.041,-.089,.018,.045,-.034,.038,-.027,-.031,'
        '.059,.039,-.062,-.035,.042,.046,.055,.032,-.012,-.016,.031,-.062,.053,.047,-.049,.015,-.004,-.043,-.042,.063,'
        '-.047,-.065,.060,.067,.040,.048]'
        )::extensions.halfvec AS above,
        pg_catalog.array_fill(0.0275::real, ARRAY[384])::extensions.halfvec AS step) AS usual
$$;
COMMENT ON FUNCTION rag_meaning_bits(extensions.halfvec) IS 'What is scanned of a vector of meaning in large collections.';

CREATE TABLE meaning_bits (
    chunk_id uuid PRIMARY KEY,
    collection_id uuid NOT NULL,
    document_id uuid NOT NULL,
    tenant_id text NOT NULL REFERENCES tenants ON DELETE CASCADE,
    language text NOT NULL,
    bits bit(1152) NOT NULL,
    FOREIGN KEY (chunk_id, tenant_id) REFERENCES meaning_vectors (chunk_id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (collection_id, tenant_id) REFERENCES collections (id, tenant_id) ON DELETE CASCADE,
    FOREIGN KEY (document_id, tenant_id) REFERENCES documents (id, tenant_id) ON DELETE CASCADE
);
ALTER TABLE meaning_bits ALTER COLUMN bits SET STORAGE PLAIN;
-- Ids are drawn at random, so that the first of a language are a sample of its passages.
CREATE INDEX meaning_bits_scope ON meaning_bits (tenant_id, collection_id, language, chunk_id);
CREATE INDEX meaning_bits_document ON meaning_bits (document_id);

-- Passages that have their vector already. The owner is bound by row-level security, and no tenant is set here: lifted
-- for the moment.
ALTER TABLE meaning_vectors NO FORCE ROW LEVEL SECURITY;
INSERT INTO meaning_bits (chunk_id, collection_id, document_id, tenant_id, language, bits)
SELECT chunk_id, collection_id, document_id, tenant_id, language, rag_meaning_bits(embedding)
FROM meaning_vectors WHERE embedding IS NOT NULL;
ALTER TABLE meaning_vectors FORCE ROW LEVEL SECURITY;

ALTER TABLE meaning_bits ENABLE ROW LEVEL SECURITY;
ALTER TABLE meaning_bits FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON meaning_bits USING (tenant_id = (SELECT rag_tenant()))
    WITH CHECK (tenant_id = (SELECT rag_tenant()));
CREATE POLICY reader ON meaning_bits AS RESTRICTIVE FOR SELECT
    USING ((SELECT rag_reads_all()) OR collection_id = ANY (ARRAY(SELECT id FROM collections)));
GRANT SELECT, INSERT ON meaning_bits TO rag_app;

SELECT rag_close_rest_api();
