from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0004_channel_hour'),
    ]

    operations = [
        migrations.AddField(
            model_name='channel',
            name='max_subscriptions',
            field=models.PositiveIntegerField(blank=True, help_text="Also expired ones. Empty: the installation's setting.", null=True),
        ),
        migrations.AddField(
            model_name='channelcounter',
            name='stored_subscriptions',
            field=models.BigIntegerField(db_default=0, default=0, help_text='Rows: the subscribers, and those that have expired.'),
        ),
    ]
