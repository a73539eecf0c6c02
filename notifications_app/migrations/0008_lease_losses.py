from django.db import migrations, models


class Migration(migrations.Migration):
    """The field `lapses` is called `lease_losses`. The database stays as it is: the column keeps
    its name, so that processes of the version before run on while a new one is rolled out."""

    dependencies = [
        ('notifications_app', '0007_batch_breaking'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveIndex(model_name='batch', name='batch_breaking'),
                migrations.RenameField('batch', 'lapses', 'lease_losses'),
                migrations.AlterField(
                    model_name='batch',
                    name='lease_losses',
                    field=models.PositiveSmallIntegerField(db_column='lapses', db_default=0, default=0, help_text='In a row: leases that ended without the worker, and passes that broke.'),
                ),
                migrations.AddIndex(
                    model_name='batch',
                    index=models.Index(condition=models.Q(('lease_losses__gte', 3), models.Q(('status', 'done'), _negated=True)), fields=['notification'], name='batch_breaking'),
                ),
            ],
        ),
    ]
