from django.db import migrations


class Migration(migrations.Migration):
    """Leaves room on the pages of deliveries.

    A delivery is written once, waiting, and mostly updated once, with its outcome. On a full page
    the new version goes to another page, and each index gets another entry. With room on its own
    page the update is HOT: it touches no index, and its WAL is a third. The pages are no more than
    the two versions would fill anyway. The setting holds for pages that are written from now on;
    it is instant and locks out no reads or writes.
    """

    dependencies = [
        ('notifications_app', '0009_data_names'),
    ]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE notifications_app_delivery SET (fillfactor = 45)",
            "ALTER TABLE notifications_app_delivery RESET (fillfactor)",
        ),
    ]
