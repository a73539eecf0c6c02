from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0013_pause_and_stop'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='edited_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='notification',
            name='expires_at',
            field=models.DateTimeField(blank=True, help_text='No call is made afterwards, whatever `ttl` says.', null=True),
        ),
    ]
