from django.db import migrations, models
from django.db.models.functions import Now

# A channel that exists now may have browsers with the worker of the version before. It would show
# nothing of a declarative message whose notification the browser gives to it in place of the
# payload. A browser fetches the new worker at a visit, at which it also registers. The hour is for
# processes that still serve the old one.
_LATER = """
UPDATE channels_app_channel SET declarative_from = now() + interval '1 hour'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0014_scope_subscribers'),
    ]

    operations = [
        migrations.AddField(
            model_name='channel',
            name='site_url',
            field=models.CharField(blank=True, db_default='', default='', help_text='What a click opens if the notification has no url and the worker is gone.', max_length=2000),
        ),
        migrations.AddField(
            model_name='channel',
            name='declarative_from',
            field=models.DateTimeField(db_default=Now(), editable=False, help_text='Browsers that registered since have a worker that reads declarative messages.'),
        ),
        migrations.RunSQL(_LATER, migrations.RunSQL.noop),
    ]
