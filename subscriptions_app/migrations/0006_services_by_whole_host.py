from django.db import migrations

# A push service was known by the end of a host's name, and is now by the whole of it
# (pushsvc/common/endpoints). Devices say their endpoint again at their next visit; until then rows
# would name a service for hosts that anyone can make up.
_RENAME = """
UPDATE subscriptions_app_subscription SET push_service = 'other'
WHERE platform = 'web' AND push_service IN ('fcm', 'mozilla', 'apple', 'wns')
  AND lower(substring(address FROM '//([^/:?]+)')) NOT IN (
    'fcm.googleapis.com', 'updates.push.services.mozilla.com', 'web.push.apple.com',
    'wns2-am3p.notify.windows.com', 'wns2-bl2p.notify.windows.com',
    'wns2-bn3p.notify.windows.com', 'wns2-by3p.notify.windows.com',
    'wns2-ch1p.notify.windows.com', 'wns2-db5p.notify.windows.com',
    'wns2-ln2p.notify.windows.com', 'wns2-par02p.notify.windows.com',
    'wns2-pn1p.notify.windows.com', 'wns2-sg2p.notify.windows.com')
"""


class Migration(migrations.Migration):

    dependencies = [
        ('subscriptions_app', '0005_place_once'),
    ]

    operations = [
        migrations.RunSQL(_RENAME, migrations.RunSQL.noop),
    ]
