from django.contrib.postgres.operations import AddConstraintNotValid, ValidateConstraint
from django.db import migrations, models

# A unique index for each place of an address: the current row, and one that is set aside.
_BUILD = """
CREATE UNIQUE INDEX CONCURRENTLY subscription_place_once ON subscriptions_app_subscription
  (channel_id, platform, address_sha256, is_set_aside)
"""
_ADOPT = """
ALTER TABLE subscriptions_app_subscription
ADD CONSTRAINT subscription_place_once UNIQUE USING INDEX subscription_place_once
"""
_DROP = "ALTER TABLE subscriptions_app_subscription DROP CONSTRAINT subscription_place_once"


class Migration(migrations.Migration):
    # The table may hold millions: devices go on subscribing while the index is built.
    atomic = False

    dependencies = [
        ('subscriptions_app', '0004_set_aside'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AddConstraint(
                    model_name='subscription',
                    constraint=models.UniqueConstraint(fields=('channel', 'platform', 'address_sha256', 'is_set_aside'), name='subscription_place_once'),
                ),
            ],
            database_operations=[
                migrations.RunSQL(_BUILD, migrations.RunSQL.noop),
                migrations.RunSQL(_ADOPT, _DROP),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='subscription',
            name='subscription_address_once',
        ),
        AddConstraintNotValid(
            model_name='subscription',
            constraint=models.CheckConstraint(condition=models.Q(('is_set_aside', False), ('expired_at__isnull', False), _connector='OR'), name='subscription_set_aside_expired'),
        ),
        ValidateConstraint(
            model_name='subscription',
            name='subscription_set_aside_expired',
        ),
    ]
