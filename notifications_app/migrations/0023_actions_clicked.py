import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0022_category'),
    ]

    operations = [
        migrations.AddField(
            model_name='delivery',
            name='clicked_action',
            field=models.SmallIntegerField(help_text="Which of the notification's buttons was clicked, from 0.", null=True),
        ),
        migrations.CreateModel(
            name='ActionCount',
            fields=[
                ('pk', models.CompositePrimaryKey('notification_id', 'action', blank=True, editable=False, primary_key=True, serialize=False)),
                ('action', models.CharField(max_length=32)),
                ('count', models.BigIntegerField()),
                ('notification', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='notifications_app.notification')),
            ],
        ),
    ]
