from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0026_notification_template'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='vars',
            field=models.JSONField(blank=True, help_text="The send's values for its placeholders.", null=True),
        ),
        migrations.AddField(
            model_name='target',
            name='vars',
            field=models.JSONField(help_text='Its own values for placeholders.', null=True),
        ),
    ]
