from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    # Targets go on being written while the index is built.
    atomic = False

    dependencies = [
        ('notifications_app', '0027_personal'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='target',
            index=models.Index(condition=models.Q(('subscription_id__isnull', False), ('vars__isnull', False)), fields=['subscription_id'], name='target_own_vars'),
        ),
    ]
