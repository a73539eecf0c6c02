// Made by .ci/texts.py.
window.pushsvcTexts = {
" = %(moment)s in %(zone)s": [
" = %(moment)s في %(zone)s"
],
"%(bytes)s of %(most)s bytes": [
"%(bytes)s من %(most)s بايت"
],
"%(count)s device": [
"%(count)s أجهزة",
"جهاز واحد",
"جهازان",
"%(count)s أجهزة",
"%(count)s جهازًا",
"%(count)s جهاز"
],
"%(count)s device did not get the tag, because it has 100.": [
"لم يحصل على الوسم %(count)s جهاز، لأن لديه 100.",
"لم يحصل على الوسم جهاز واحد، لأن لديه 100.",
"لم يحصل على الوسم جهازان، لأن لديهما 100.",
"لم تحصل على الوسم %(count)s أجهزة، لأن لديها 100.",
"لم يحصل على الوسم %(count)s جهازًا، لأن لديها 100.",
"لم يحصل على الوسم %(count)s جهاز، لأن لديها 100."
],
"%(count)s more": [
"%(count)s أخرى"
],
"%(count)s subscriber": [
"%(count)s مشتركين",
"مشترك واحد",
"مشتركان",
"%(count)s مشتركين",
"%(count)s مشتركًا",
"%(count)s مشترك"
],
"%(created)s created, %(updated)s updated, %(unchanged)s unchanged, %(refused)s refused": [
"أُنشئ %(created)s، وحُدّث %(updated)s، ولم يتغير %(unchanged)s، ورُفض %(refused)s"
],
"%(kind)s found: %(file)s.": [
"عُثر على %(kind)s: %(file)s."
],
"%(kind)s, but your browser cannot show it.": [
"%(kind)s، لكن متصفحك لا يستطيع عرضها."
],
"%(length)s of %(most)s characters": [
"%(length)s من %(most)s حرفًا"
],
"%(minutes)s min left": [
"بقي %(minutes)s دقيقة"
],
"%(missing)s missing": [
"%(missing)s ناقصة"
],
"%(place)s of %(total)s ids": [
"%(place)s من %(total)s من المعرّفات"
],
"%(rows)s rows a second": [
"%(rows)s صفًا في الثانية"
],
"%(seconds)s s left": [
"بقي %(seconds)s ثانية"
],
"%(utc)s · shown in %(zone)s": [
"%(utc)s · معروض بتوقيت %(zone)s"
],
"(without a name)": [
"(بلا اسم)"
],
". This is in the past, so it would be sent at once.": [
". هذا في الماضي، فسيُرسل فورًا."
],
"Add condition": [
"إضافة شرط"
],
"Add group": [
"إضافة مجموعة"
],
"Add: %(label)s": [
"إضافة: %(label)s"
],
"Address": [
"العنوان"
],
"App version": [
"إصدار التطبيق"
],
"As shown on devices in %(language)s.": [
"كما يظهر على الأجهزة باللغة %(language)s."
],
"At most ten.": [
"عشرة كحد أقصى."
],
"Attribute": [
"السمة"
],
"Attributes and tags": [
"السمات والوسوم"
],
"Attributes that are not taken: %(names)s.": [
"سمات لا تؤخذ: %(names)s."
],
"Choose a file.": [
"اختر ملفًا."
],
"Choose a platform to count its subscribers.": [
"اختر منصة لعدّ مشتركيها."
],
"Choose an audience to count its subscribers.": [
"اختر جمهورًا لعدّ مشتركيه."
],
"Clicked": [
"نُقر"
],
"Column %(column)s contains": [
"محتوى العمود %(column)s"
],
"Column %(place)s": [
"العمود %(place)s"
],
"Comparison": [
"المقارنة"
],
"Continue": [
"متابعة"
],
"Copied": [
"نُسخ"
],
"Country": [
"البلد"
],
"Dashboard": [
"لوحة المعلومات"
],
"Date and time (%(zone)s)": [
"التاريخ والوقت (%(zone)s)"
],
"Days": [
"الأيام"
],
"Dry run: nothing is stored.": [
"تجربة جافة: لا يُخزَّن شيء."
],
"Earlier notification": [
"إشعار سابق"
],
"Estimated from a sample of the segment.": [
"مقدّر من عينة من الشريحة."
],
"Exact, as of now.": [
"دقيق حتى الآن."
],
"First values: %(values)s": [
"القيم الأولى: %(values)s"
],
"Found in the first rows, and not taken: %(names)s.": [
"وُجدت في الصفوف الأولى ولا تؤخذ: %(names)s."
],
"Group of conditions": [
"مجموعة شروط"
],
"Hour %(start)s": [
"الساعة %(start)s"
],
"How the conditions are combined": [
"طريقة جمع الشروط"
],
"Icon": [
"الأيقونة"
],
"Import": [
"استيراد"
],
"Import “%(file)s” into the channel “%(channel)s”?": [
"استيراد «%(file)s» إلى القناة «%(channel)s»؟"
],
"Importing…": [
"يجري الاستيراد…"
],
"Kind of value": [
"نوع القيمة"
],
"Language": [
"اللغة"
],
"Languages": [
"اللغات"
],
"Last seen": [
"آخر ظهور"
],
"Leave empty for all.": [
"اتركه فارغًا لأخذها كلها."
],
"Line": [
"السطر"
],
"Line %(line)s": [
"السطر %(line)s"
],
"Line %(line)s, column %(column)s: This is not %(encoding)s. Choose another encoding above.": [
"السطر %(line)s، العمود %(column)s: هذا ليس %(encoding)s. اختر ترميزًا آخر أعلاه."
],
"Line %(line)s: The row that begins here is too long.": [
"السطر %(line)s: الصف الذي يبدأ هنا طويل جدًا."
],
"Matches": [
"يطابق"
],
"Names, with commas between.": [
"أسماء تفصل بينها فواصل."
],
"Next try in %(seconds)s s.": [
"المحاولة التالية بعد %(seconds)s ثانية."
],
"No longer exists": [
"لم يعد موجودًا"
],
"No picture": [
"لا صورة"
],
"None of these people has a device, so there is no segment.": [
"ليس لأي من هؤلاء جهاز، لذا لا شريحة."
],
"Not saved: %(reason)s": [
"لم يُحفظ: %(reason)s"
],
"Notification id": [
"معرّف الإشعار"
],
"Outcome": [
"النتيجة"
],
"Pages of the console": [
"صفحات لوحة التحكم"
],
"Pages of the list": [
"صفحات القائمة"
],
"Perhaps a double quote at the beginning of a field does not end.": [
"ربما لا تُغلق علامة اقتباس مزدوجة في بداية حقل."
],
"Person": [
"الشخص"
],
"Picture": [
"الصورة"
],
"Platform": [
"المنصة"
],
"Remove condition": [
"إزالة الشرط"
],
"Remove group": [
"إزالة المجموعة"
],
"Rows": [
"الصفوف"
],
"Saved": [
"حُفظ"
],
"Saving…": [
"جارٍ الحفظ…"
],
"Scrolling part of the side bar": [
"الجزء القابل للتمرير من الشريط الجانبي"
],
"Search": [
"بحث"
],
"Selected: copy it now": [
"محدَّد: انسخه الآن"
],
"Sign in again in another tab.": [
"سجّل الدخول مجددًا في علامة تبويب أخرى."
],
"Stopped before line %(line)s. The rows before it are imported.": [
"توقف قبل السطر %(line)s. الصفوف التي قبله مستوردة."
],
"Stopping after this part…": [
"يتوقف بعد هذا الجزء…"
],
"Subscribed": [
"اشترك"
],
"Tag": [
"الوسم"
],
"That failed. Reload the page.": [
"فشل ذلك. أعد تحميل الصفحة."
],
"The address could not be checked. The next change retries.": [
"تعذّر فحص العنوان. التغيير التالي يعيد المحاولة."
],
"The channel no longer exists.": [
"لم تعد القناة موجودة."
],
"The column has no ids.": [
"لا معرّفات في العمود."
],
"The dry run has ended. Nothing was stored.": [
"انتهت التجربة الجافة. لم يُخزَّن شيء."
],
"The dry run was cancelled.": [
"أُلغيت التجربة الجافة."
],
"The file cannot be read any more. Choose it again.": [
"لم يعد يمكن قراءة الملف. اختره مرة أخرى."
],
"The file has more than %(most)s MB.": [
"حجم الملف أكبر من %(most)s م.ب."
],
"The file has no rows.": [
"لا صفوف في الملف."
],
"The file is empty.": [
"الملف فارغ."
],
"The file is imported.": [
"استُورد الملف."
],
"The file is not %(encoding)s. Choose another encoding above.": [
"الملف ليس %(encoding)s. اختر ترميزًا آخر أعلاه."
],
"The file is too large.": [
"الملف كبير جدًا."
],
"The import failed. Reload the page.": [
"فشل الاستيراد. أعد تحميل الصفحة."
],
"The import of “%(name)s” stopped before line %(line)s (%(percent)s %): %(counts)s. To go on, choose the same file.": [
"توقف استيراد «%(name)s» قبل السطر %(line)s ‏(%(percent)s %): %(counts)s. للمتابعة اختر الملف نفسه."
],
"The preview could not be loaded. Reload the page.": [
"تعذّر تحميل المعاينة. أعد تحميل الصفحة."
],
"The service cannot be reached.": [
"لا يمكن الوصول إلى الخدمة."
],
"The service cannot be reached. Press the button to go on.": [
"تعذّر الوصول إلى الخدمة. اضغط الزر للمتابعة."
],
"The service could not be reached. The next change retries.": [
"تعذّر الوصول إلى الخدمة. التغيير التالي يعيد المحاولة."
],
"The service did not respond. Your input is kept. The next change retries.": [
"لم تستجب الخدمة. ما كتبتَه محفوظ. التغيير التالي يعيد المحاولة."
],
"The service responded with %(status)s.": [
"ردت الخدمة بـ%(status)s."
],
"The upload failed. Try again.": [
"فشل الرفع. حاول مرة أخرى."
],
"This file is compressed. Decompress it first.": [
"هذا الملف مضغوط. فك ضغطه أولًا."
],
"This file is imported up to line %(line)s.": [
"هذا الملف مستورد حتى السطر %(line)s."
],
"This is a workbook or an archive. Save the table as “CSV UTF-8”.": [
"هذا مصنّف أو أرشيف. احفظ الجدول بصيغة «CSV UTF-8»."
],
"Time zone": [
"المنطقة الزمنية"
],
"Times": [
"الأوقات"
],
"Too many uploads. Wait a minute.": [
"عمليات رفع كثيرة. انتظر دقيقة."
],
"Unknown and ignored: %(ids)s": [
"مجهولة ومتجاهلة: %(ids)s"
],
"Value": [
"القيمة"
],
"What is tested": [
"ما يُختبر"
],
"With the values of %(device)s.": [
"بقيم %(device)s."
],
"You are signed out, or may no longer do this. Reload the page.": [
"خرجت من حسابك أو لم يعد يحق لك ذلك. أعد تحميل الصفحة."
],
"You are signed out, or may no longer import. Sign in, reload this page, and choose the file again.": [
"سُجّل خروجك، أو لم يعد يحق لك الاستيراد. سجّل الدخول، وأعد تحميل هذه الصفحة، واختر الملف مرة أخرى."
],
"Your text": [
"نصك"
],
"about %(number)s": [
"نحو %(number)s"
],
"add a value": [
"إضافة قيمة"
],
"after": [
"بعد"
],
"all of these": [
"كل هذه"
],
"and %(count)s more": [
"و%(count)s أخرى"
],
"any of these": [
"أيًا من هذه"
],
"at any time": [
"في أي وقت"
],
"before": [
"قبل"
],
"belongs to a person": [
"ينتمي إلى شخص"
],
"belongs to no person": [
"لا ينتمي إلى شخص"
],
"bounced": [
"مرتد"
],
"contains": [
"يحتوي"
],
"created": [
"أُنشئ"
],
"created %(day)s": [
"أُنشئ %(day)s"
],
"in the last … days": [
"في آخر … أيام"
],
"is": [
"هو"
],
"is after": [
"بعد"
],
"is at least": [
"على الأقل"
],
"is at most": [
"على الأكثر"
],
"is at or after": [
"في أو بعد"
],
"is at or before": [
"في أو قبل"
],
"is before": [
"قبل"
],
"is not": [
"ليس"
],
"is not set": [
"غير محدد"
],
"is one of": [
"واحد من"
],
"is sent as written, because the notification is not personalized.": [
"لا يُرسل شيء كما كُتب.",
"يُرسل كما كُتب لأن الإشعار غير مخصص.",
"يُرسلان كما كُتبا لأن الإشعار غير مخصص.",
"تُرسل كما كُتبت لأن الإشعار غير مخصص.",
"تُرسل كما كُتبت لأن الإشعار غير مخصص.",
"تُرسل كما كُتبت لأن الإشعار غير مخصص."
],
"is set": [
"محدد"
],
"its id": [
"معرّفه"
],
"last seen %(day)s": [
"آخر ظهور %(day)s"
],
"line %(line)s": [
"السطر %(line)s"
],
"more than … days ago": [
"قبل أكثر من … أيام"
],
"never": [
"أبدًا"
],
"none of these": [
"لا شيء من هذه"
],
"not all of these": [
"ليس كل هذه"
],
"not in the last … days": [
"ليس في آخر … أيام"
],
"number": [
"رقم"
],
"on or after": [
"في أو بعد"
],
"on or before": [
"في أو قبل"
],
"one in each line": [
"واحد في كل سطر"
],
"refused": [
"مرفوض"
],
"starts with": [
"يبدأ بـ"
],
"text": [
"نص"
],
"the last": [
"الأخير"
],
"unchanged": [
"لم يتغير"
],
"updated": [
"حُدّث"
],
"was clicked": [
"نُقر"
],
"was delivered": [
"سُلّم"
],
"was delivered and not clicked": [
"سُلّم ولم يُنقر"
],
"was delivered and not reported as received": [
"سُلّم ولم يُبلَّغ عن استلامه"
],
"was received": [
"استُلم"
],
"your site": [
"موقعك"
],
"“%(name)s” was imported: %(counts)s.": [
"استُورد «%(name)s»: %(counts)s."
]
};
