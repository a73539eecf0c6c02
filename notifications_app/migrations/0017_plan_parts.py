from django.db import migrations, models


class Migration(migrations.Migration):
    """Processes of the version before neither read nor write these columns: their planners make
    plans without `release_at` and `deadline_at`."""

    dependencies = [
        ('notifications_app', '0016_event_hours'),
    ]

    operations = [
        migrations.AddField(
            model_name='plan',
            name='part',
            field=models.SmallIntegerField(db_default=0, default=0, help_text='Counts the parts of a platform, from 0.'),
        ),
        migrations.AddField(
            model_name='plan',
            name='release_at',
            field=models.DateTimeField(help_text='Nobody is planned before. Null: a planner of an older version made the plan.', null=True),
        ),
        migrations.AddField(
            model_name='plan',
            name='deadline_at',
            field=models.DateTimeField(help_text="When the time to live ends, pauses included. Null: with the notification's.", null=True),
        ),
    ]
