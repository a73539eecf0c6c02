// Made by .ci/texts.py.
window.pushsvcTexts = {
" = %(moment)s in %(zone)s": [
" = %(moment)s in %(zone)s"
],
"%(bytes)s of %(most)s bytes": [
"%(bytes)s von %(most)s Byte"
],
"%(count)s device": [
"%(count)s Gerät",
"%(count)s Geräte"
],
"%(count)s more": [
"%(count)s weitere"
],
"%(count)s subscriber": [
"%(count)s Abonnent",
"%(count)s Abonnenten"
],
"%(kind)s, but your browser cannot show it.": [
"%(kind)s, aber Ihr Browser kann es nicht anzeigen."
],
"%(length)s of %(most)s characters": [
"%(length)s von %(most)s Zeichen"
],
"%(missing)s missing": [
"%(missing)s fehlen"
],
"%(utc)s · shown in %(zone)s": [
"%(utc)s · angezeigt in %(zone)s"
],
". This is in the past, so it would be sent at once.": [
". Das liegt in der Vergangenheit; sie würde sofort gesendet."
],
"Add condition": [
"Bedingung hinzufügen"
],
"Add group": [
"Gruppe hinzufügen"
],
"Add: %(label)s": [
"Hinzufügen: %(label)s"
],
"App version": [
"App-Version"
],
"As shown on devices in %(language)s.": [
"Wie auf Geräten in %(language)s."
],
"Attribute": [
"Attribut"
],
"Choose a file.": [
"Wählen Sie eine Datei."
],
"Choose a platform to count its subscribers.": [
"Wählen Sie eine Plattform, um ihre Abonnenten zu zählen."
],
"Choose an audience to count its subscribers.": [
"Wählen Sie eine Zielgruppe, um ihre Abonnenten zu zählen."
],
"Clicked": [
"Angeklickt"
],
"Column %(place)s": [
"Spalte %(place)s"
],
"Comparison": [
"Vergleich"
],
"Copied": [
"Kopiert"
],
"Country": [
"Land"
],
"Dashboard": [
"Dashboard"
],
"Date and time (%(zone)s)": [
"Datum und Uhrzeit (%(zone)s)"
],
"Days": [
"Tage"
],
"Earlier notification": [
"Frühere Benachrichtigung"
],
"Estimated from a sample of the segment.": [
"Aus einer Stichprobe des Segments geschätzt."
],
"Exact, as of now.": [
"Genau, nach jetzigem Stand."
],
"First values: %(values)s": [
"Erste Werte: %(values)s"
],
"Group of conditions": [
"Gruppe von Bedingungen"
],
"Hour %(start)s": [
"Stunde %(start)s"
],
"How the conditions are combined": [
"Verknüpfung der Bedingungen"
],
"Icon": [
"Symbol"
],
"Kind of value": [
"Art des Werts"
],
"Language": [
"Sprache"
],
"Languages": [
"Sprachen"
],
"Last seen": [
"Zuletzt gesehen"
],
"Matches": [
"Erfüllt"
],
"No picture": [
"Kein Bild"
],
"None of these people has a device, so there is no segment.": [
"Keine dieser Personen hat ein Gerät; es gibt daher kein Segment."
],
"Not saved: %(reason)s": [
"Nicht gespeichert: %(reason)s"
],
"Notification id": [
"Id der Benachrichtigung"
],
"Outcome": [
"Ergebnis"
],
"Pages of the console": [
"Seiten der Konsole"
],
"Pages of the list": [
"Seiten der Liste"
],
"Person": [
"Person"
],
"Picture": [
"Bild"
],
"Platform": [
"Plattform"
],
"Remove condition": [
"Bedingung entfernen"
],
"Remove group": [
"Gruppe entfernen"
],
"Saved": [
"Gespeichert"
],
"Saving…": [
"Wird gespeichert …"
],
"Scrolling part of the side bar": [
"Scrollbarer Teil der Seitenleiste"
],
"Search": [
"Suchen"
],
"Sign in again in another tab.": [
"Melden Sie sich in einem anderen Tab wieder an."
],
"Subscribed": [
"Abonniert"
],
"Tag": [
"Tag"
],
"That failed. Reload the page.": [
"Das ist fehlgeschlagen. Laden Sie die Seite neu."
],
"The address could not be checked. The next change retries.": [
"Die Adresse ließ sich nicht prüfen. Die nächste Änderung versucht es erneut."
],
"The column has no ids.": [
"Die Spalte enthält keine Ids."
],
"The file has more than %(most)s MB.": [
"Die Datei hat mehr als %(most)s MB."
],
"The file is empty.": [
"Die Datei ist leer."
],
"The file is too large.": [
"Die Datei ist zu groß."
],
"The preview could not be loaded. Reload the page.": [
"Die Vorschau ließ sich nicht laden. Laden Sie die Seite neu."
],
"The service cannot be reached. Press the button to go on.": [
"Der Dienst ist nicht erreichbar. Drücken Sie die Schaltfläche, um fortzufahren."
],
"The service could not be reached. The next change retries.": [
"Der Dienst war nicht erreichbar. Die nächste Änderung versucht es erneut."
],
"The service responded with %(status)s.": [
"Der Dienst antwortete mit %(status)s."
],
"The upload failed. Try again.": [
"Das Hochladen ist fehlgeschlagen. Versuchen Sie es erneut."
],
"Time zone": [
"Zeitzone"
],
"Too many uploads. Wait a minute.": [
"Zu viele Uploads. Warten Sie eine Minute."
],
"Unknown and ignored: %(ids)s": [
"Unbekannt und ignoriert: %(ids)s"
],
"Value": [
"Wert"
],
"What is tested": [
"Was geprüft wird"
],
"With the values of %(device)s.": [
"Mit den Werten von %(device)s."
],
"You are signed out, or may no longer do this. Reload the page.": [
"Sie sind abgemeldet oder dürfen das nicht mehr. Laden Sie die Seite neu."
],
"Your text": [
"Ihr Text"
],
"about %(number)s": [
"etwa %(number)s"
],
"add a value": [
"Wert hinzufügen"
],
"after": [
"nach"
],
"all of these": [
"alle davon"
],
"any of these": [
"mindestens eine davon"
],
"at any time": [
"irgendwann"
],
"before": [
"vor"
],
"belongs to a person": [
"gehört zu einer Person"
],
"belongs to no person": [
"gehört zu keiner Person"
],
"bounced": [
"war unzustellbar"
],
"contains": [
"enthält"
],
"in the last … days": [
"in den letzten … Tagen"
],
"is": [
"ist"
],
"is after": [
"ist nach"
],
"is at least": [
"ist mindestens"
],
"is at most": [
"ist höchstens"
],
"is at or after": [
"ist am oder nach"
],
"is at or before": [
"ist am oder vor"
],
"is before": [
"ist vor"
],
"is not": [
"ist nicht"
],
"is not set": [
"ist nicht gesetzt"
],
"is one of": [
"ist eines von"
],
"is set": [
"ist gesetzt"
],
"its id": [
"ihre Id"
],
"more than … days ago": [
"vor mehr als … Tagen"
],
"never": [
"nie"
],
"none of these": [
"keine davon"
],
"not all of these": [
"nicht alle davon"
],
"not in the last … days": [
"nicht in den letzten … Tagen"
],
"on or after": [
"am oder nach"
],
"on or before": [
"am oder vor"
],
"one in each line": [
"einer pro Zeile"
],
"starts with": [
"beginnt mit"
],
"the last": [
"der letzte"
],
"was clicked": [
"wurde angeklickt"
],
"was delivered": [
"wurde zugestellt"
],
"was delivered and not clicked": [
"wurde zugestellt und nicht angeklickt"
],
"was delivered and not reported as received": [
"wurde zugestellt und nicht als empfangen gemeldet"
],
"was received": [
"wurde empfangen"
],
"your site": [
"Ihre Website"
]
};
