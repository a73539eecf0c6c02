from django.db import migrations, models

# Rows that processes of the version before insert while this one is rolled out are not in it: the
# bound is reached so much later.
_COUNT = """
INSERT INTO channels_app_channelcounter AS counter (channel_id, shard, stored_subscriptions)
SELECT channel_id, 0, count(*) FROM subscriptions_app_subscription
GROUP BY channel_id ORDER BY channel_id
ON CONFLICT (channel_id, shard) DO UPDATE
SET stored_subscriptions = EXCLUDED.stored_subscriptions
"""


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0005_stored_subscriptions'),
        ('subscriptions_app', '0006_services_by_whole_host'),
    ]

    operations = [
        # What is there already is taken as proven. As a default it is written to no row.
        migrations.AddField(
            model_name='subscription',
            name='is_proven',
            field=models.BooleanField(db_default=True, default=False, editable=False),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='is_proven',
            field=models.BooleanField(db_default=False, default=False, editable=False, help_text='A push service has taken a message for it.'),
        ),
        migrations.RunSQL(_COUNT, migrations.RunSQL.noop),
    ]
