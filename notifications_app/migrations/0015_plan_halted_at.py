from django.db import migrations, models


class Migration(migrations.Migration):
    """Apart from the columns of notifications: planners lock a plan and then its notification, so a
    transaction that locks the two tables the other way round could deadlock with them."""

    dependencies = [
        ('notifications_app', '0014_expiry_and_edit'),
    ]

    operations = [
        migrations.AddField(
            model_name='plan',
            name='halted_at',
            field=models.DateTimeField(help_text='Since when its notification is paused or stopped.', null=True),
        ),
    ]
