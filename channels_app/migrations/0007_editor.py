from django.db import migrations, models

ROLES = ['viewer', 'sender', 'editor', 'manager', 'owner']


class Migration(migrations.Migration):
    # The table has a row for each member of staff, so the check of its rows takes no time.

    dependencies = [
        ('channels_app', '0006_limits_of_the_channel'),
    ]

    operations = [
        migrations.AlterField(
            model_name='membership',
            name='role',
            field=models.CharField(choices=[('viewer', 'Viewer: reads everything but secrets'), ('sender', 'Sender: composes, schedules, tests and cancels notifications'), ('editor', 'Editor: creates and changes segments'), ('manager', 'Manager: changes channels, keys, credentials; deletes and exports'), ('owner', "Owner: chooses the account's members and their roles")], default='viewer', max_length=7),
        ),
        migrations.RemoveConstraint(model_name='membership', name='membership_role'),
        migrations.AddConstraint(
            model_name='membership',
            constraint=models.CheckConstraint(condition=models.Q(('role__in', ROLES)), name='membership_role'),
        ),
    ]
