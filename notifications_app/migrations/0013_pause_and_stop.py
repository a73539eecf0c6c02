from django.db import migrations, models


class Migration(migrations.Migration):
    """Processes of the version before neither read nor write these columns: they go on sending what
    is paused or stopped until they are replaced."""

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
            field=models.PositiveIntegerField(db_default=0, default=0, help_text='By which earlier pauses prolong the attempts.'),
        ),
        migrations.AddField(
            model_name='notification',
            name='stopped_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='plan',
            name='halted_at',
            field=models.DateTimeField(help_text='Since when its notification is paused or stopped.', null=True),
        ),
    ]
