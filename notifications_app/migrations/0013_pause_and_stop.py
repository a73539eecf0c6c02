from django.db import migrations, models


class Migration(migrations.Migration):
    """Processes of the version before neither read nor write these columns: they go on sending what
    is paused or stopped until they are replaced.

    No column is filled or checked, so that each lock is short. `paused_seconds` may not be negative
    either, but a check of it would read the whole table under the lock."""

    dependencies = [
        ('notifications_app', '0012_drafts'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='paused_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='notification',
            name='paused_seconds',
            field=models.IntegerField(db_default=0, default=0, help_text='By which earlier pauses prolong the attempts.'),
        ),
        migrations.AddField(
            model_name='notification',
            name='stopped_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
