import django.db.models.deletion
from django.db import migrations, models

NAME = 'subscriptions_app_subscription_channel_id_ec5208f9'


class Migration(migrations.Migration):
    """The index of `subscription_place_once` begins with the channel, too, also for the version
    before."""

    # Devices go on subscribing while the index is dropped.
    atomic = False

    dependencies = [
        ('subscriptions_app', '0016_person_left_channel'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'DROP INDEX CONCURRENTLY IF EXISTS "{NAME}"',
                    f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{NAME}" ON "subscriptions_app_subscription" ("channel_id")',
                ),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='subscription',
                    name='channel',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='subscriptions', to='channels_app.channel'),
                ),
            ],
        ),
    ]
