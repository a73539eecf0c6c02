from django.db import migrations, models

# Whatever changes a device's person, this time changes with it, in the version before as well. The
# condition is evaluated only for statements that name the column.
NOTE = """
CREATE FUNCTION subscription_note_link() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.linked_at = clock_timestamp();
  RETURN NEW;
END $$;
CREATE TRIGGER subscription_note_link BEFORE UPDATE OF person_id ON subscriptions_app_subscription
  FOR EACH ROW WHEN (OLD.person_id IS DISTINCT FROM NEW.person_id)
  EXECUTE FUNCTION subscription_note_link();
"""
FORGET = """
DROP TRIGGER subscription_note_link ON subscriptions_app_subscription;
DROP FUNCTION subscription_note_link();
"""


class Migration(migrations.Migration):

    dependencies = [
        ('subscriptions_app', '0017_index_covered'),
    ]

    operations = [
        migrations.AddField(
            model_name='subscription',
            name='linked_at',
            field=models.DateTimeField(blank=True, editable=False, help_text='When its person changed last. A trigger writes it.', null=True),
        ),
        migrations.RunSQL(NOTE, FORGET),
    ]
