import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Processes of the version before count events without these rows: the page of a notification
    says how many events have none."""

    dependencies = [
        ('notifications_app', '0015_plan_halted_at'),
    ]

    operations = [
        migrations.CreateModel(
            name='EventHour',
            fields=[
                ('pk', models.CompositePrimaryKey('notification_id', 'hour', 'platform', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField()),
                ('platform', models.CharField(choices=[('web', 'Web'), ('android', 'Android'), ('ios', 'Ios')], max_length=7)),
                ('received', models.BigIntegerField(db_default=0, default=0)),
                ('clicked', models.BigIntegerField(db_default=0, default=0)),
                ('dismissed', models.BigIntegerField(db_default=0, default=0)),
                ('notification', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='notifications_app.notification')),
            ],
            options={
                'constraints': [models.CheckConstraint(condition=models.Q(('platform__in', ['web', 'android', 'ios'])), name='event_hour_platform')],
            },
        ),
    ]
