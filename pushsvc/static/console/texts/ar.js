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
"%(kind)s, but your browser cannot show it.": [
"%(kind)s، لكن متصفحك لا يستطيع عرضها."
],
"%(length)s of %(most)s characters": [
"%(length)s من %(most)s حرفًا"
],
"%(missing)s missing": [
"%(missing)s ناقصة"
],
"%(utc)s · shown in %(zone)s": [
"%(utc)s · معروض بتوقيت %(zone)s"
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
"App version": [
"إصدار التطبيق"
],
"As shown on devices in %(language)s.": [
"كما يظهر على الأجهزة باللغة %(language)s."
],
"Attribute": [
"السمة"
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
"Column %(place)s": [
"العمود %(place)s"
],
"Comparison": [
"المقارنة"
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
"Matches": [
"يطابق"
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
"Sign in again in another tab.": [
"سجّل الدخول مجددًا في علامة تبويب أخرى."
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
"The column has no ids.": [
"لا معرّفات في العمود."
],
"The file has more than %(most)s MB.": [
"حجم الملف أكبر من %(most)s م.ب."
],
"The file is empty.": [
"الملف فارغ."
],
"The file is too large.": [
"الملف كبير جدًا."
],
"The preview could not be loaded. Reload the page.": [
"تعذّر تحميل المعاينة. أعد تحميل الصفحة."
],
"The service cannot be reached. Press the button to go on.": [
"تعذّر الوصول إلى الخدمة. اضغط الزر للمتابعة."
],
"The service could not be reached. The next change retries.": [
"تعذّر الوصول إلى الخدمة. التغيير التالي يعيد المحاولة."
],
"The service responded with %(status)s.": [
"ردت الخدمة بـ%(status)s."
],
"The upload failed. Try again.": [
"فشل الرفع. حاول مرة أخرى."
],
"Time zone": [
"المنطقة الزمنية"
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
"ارتد"
],
"contains": [
"يحتوي"
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
"is set": [
"محدد"
],
"its id": [
"معرّفه"
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
"on or after": [
"في أو بعد"
],
"on or before": [
"في أو قبل"
],
"one in each line": [
"واحد في كل سطر"
],
"starts with": [
"يبدأ بـ"
],
"the last": [
"الأخير"
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
]
};
