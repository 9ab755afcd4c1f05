-- Somebody who lost their password asks for a new one on the sign-in page; administrators see it on the page People.

ALTER TABLE accounts ADD COLUMN password_asked_at timestamptz;
COMMENT ON COLUMN accounts.password_asked_at IS 'Since when somebody waits for a link to a new password; null: nobody.';
