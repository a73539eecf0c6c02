from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0020_plan_ending'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='extras',
            field=models.JSONField(blank=True, help_text='The fields of the content that have no column.', null=True),
        ),
    ]
