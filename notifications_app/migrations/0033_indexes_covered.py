import django.db.models.deletion
from django.db import migrations, models


def drop(table, column, name):
    return migrations.RunSQL(
        f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"',
        f'CREATE INDEX CONCURRENTLY IF NOT EXISTS "{name}" ON "{table}" ("{column}")',
    )


class Migration(migrations.Migration):
    """Another index of the table begins with each of these columns and finds the same rows, also for
    the version before."""

    # Rows go on being written while the indexes are dropped.
    atomic = False

    dependencies = [
        ('notifications_app', '0032_batch_holder'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                drop('notifications_app_batch', 'channel_id', 'notifications_app_batch_channel_id_d2eb00c2'),
                drop('notifications_app_batch', 'plan_id', 'notifications_app_batch_plan_id_dfb2c8f7'),
                drop('notifications_app_idempotencyrecord', 'channel_id', 'notifications_app_idempotencyrecord_channel_id_2ce4dacb'),
                drop('notifications_app_notification', 'channel_id', 'notifications_app_notification_channel_id_e82bd546'),
                drop('notifications_app_plan', 'notification_id', 'notifications_app_plan_notification_id_6a00f8f7'),
            ],
            state_operations=[
                migrations.AlterField(
                    model_name='batch',
                    name='channel',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='channels_app.channel'),
                ),
                migrations.AlterField(
                    model_name='batch',
                    name='plan',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='batches', to='notifications_app.plan'),
                ),
                migrations.AlterField(
                    model_name='idempotencyrecord',
                    name='channel',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='channels_app.channel'),
                ),
                migrations.AlterField(
                    model_name='notification',
                    name='channel',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='notifications', to='channels_app.channel'),
                ),
                migrations.AlterField(
                    model_name='plan',
                    name='notification',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='plans', to='notifications_app.notification'),
                ),
            ],
        ),
    ]
