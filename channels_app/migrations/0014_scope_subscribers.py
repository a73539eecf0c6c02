from django.db import migrations

# Keys with `manage` could change who gets what before there was a scope for it.
_GIVE = """
UPDATE channels_app_apikey SET scopes = scopes || '["subscribers"]'::jsonb
WHERE scopes ? 'manage' AND NOT scopes ? 'subscribers'
"""
_TAKE = "UPDATE channels_app_apikey SET scopes = scopes - 'subscribers'"


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0013_people'),
    ]

    operations = [
        migrations.RunSQL(_GIVE, _TAKE),
    ]
