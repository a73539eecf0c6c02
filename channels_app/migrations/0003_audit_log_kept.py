from django.db import migrations

# Entries of the audit log are written once. Rows that name a user who did something cannot lose that
# name either (the key is SET NULL): users are deactivated, not deleted.
KEEP = """
CREATE FUNCTION auditlog_keep() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'entries of the audit log are never changed or deleted'
    USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER auditlog_keep BEFORE UPDATE OR DELETE ON auditlog_logentry
  FOR EACH ROW EXECUTE FUNCTION auditlog_keep();
"""
LET_GO = """
DROP TRIGGER auditlog_keep ON auditlog_logentry;
DROP FUNCTION auditlog_keep();
"""
# Staff read the entries of their accounts, newest first.
INDEX = """
CREATE INDEX auditlog_by_account ON auditlog_logentry ((additional_data ->> 'account'), id DESC);
"""


class Migration(migrations.Migration):

    dependencies = [
        ("channels_app", "0002_membership"),
        ("auditlog", "0017_add_actor_email"),
    ]

    operations = [
        migrations.RunSQL(KEEP, LET_GO),
        migrations.RunSQL(INDEX, "DROP INDEX auditlog_by_account;"),
    ]
