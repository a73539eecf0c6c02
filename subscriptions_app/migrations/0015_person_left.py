from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('subscriptions_app', '0014_category'),
    ]

    operations = [
        migrations.AddField(
            model_name='person',
            name='left_at',
            field=models.DateTimeField(blank=True, help_text='Since then the person has no active device.', null=True),
        ),
        # Not concurrently: the table is new, and empty.
        migrations.AddIndex(
            model_name='person',
            index=models.Index(condition=models.Q(('choices', {}), ('left_at__isnull', False), ('opted_out_at__isnull', True)), fields=['left_at'], name='person_left'),
        ),
    ]
