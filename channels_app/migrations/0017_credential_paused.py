from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("channels_app", "0016_paused_platform_retries"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="providercredential",
            index=models.Index(
                condition=models.Q(("paused_at__isnull", False)),
                fields=["paused_at"],
                name="credential_paused",
            ),
        ),
    ]
