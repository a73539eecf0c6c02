from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('notifications_app', '0025_template'),
    ]

    operations = [
        migrations.AddField(
            model_name='notification',
            name='template_id',
            field=models.UUIDField(blank=True, help_text='Its content was copied from it. The template may be deleted since.', null=True),
        ),
    ]
