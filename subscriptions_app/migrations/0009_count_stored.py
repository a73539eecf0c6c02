from django.db import migrations

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
    # By itself: with a change of the table in one transaction, the count would lock everybody out.

    dependencies = [
        ('channels_app', '0005_stored_subscriptions'),
        ('subscriptions_app', '0008_unproven_index'),
    ]

    operations = [
        migrations.RunSQL(_COUNT, migrations.RunSQL.noop),
    ]
