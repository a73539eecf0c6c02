from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("channels_app", "0010_requires_two_step"),
    ]

    operations = [
        AddIndexConcurrently(
            model_name="providercredential",
            index=models.Index(
                condition=models.Q(("checked_at__isnull", True)),
                fields=["updated_at"],
                name="credential_unchecked",
            ),
        ),
    ]
