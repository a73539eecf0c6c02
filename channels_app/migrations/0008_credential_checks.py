from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('channels_app', '0007_editor'),
    ]

    operations = [
        migrations.AddField(
            model_name='providercredential',
            name='checked_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name='providercredential',
            name='is_accepted',
            field=models.BooleanField(blank=True, help_text='By the last check of this version. Null: no answer.', null=True),
        ),
        migrations.AddField(
            model_name='providercredential',
            name='checked_words',
            field=models.CharField(blank=True, db_default='', default='', help_text='What was answered.', max_length=300),
        ),
    ]
