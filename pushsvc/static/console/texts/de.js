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
"%(count)s device did not get the tag, because it has 100.": [
"%(count)s Gerät hat den Tag nicht bekommen, weil es schon 100 hat.",
"%(count)s Geräte haben den Tag nicht bekommen, weil sie schon 100 haben."
],
"%(count)s more": [
"%(count)s weitere"
],
"%(count)s subscriber": [
"%(count)s Abonnent",
"%(count)s Abonnenten"
],
"%(created)s created, %(updated)s updated, %(unchanged)s unchanged, %(refused)s refused": [
"%(created)s angelegt, %(updated)s geändert, %(unchanged)s unverändert, %(refused)s abgelehnt"
],
"%(kind)s found: %(file)s.": [
"%(kind)s gefunden: %(file)s."
],
"%(kind)s, but your browser cannot show it.": [
"%(kind)s, aber Ihr Browser kann es nicht anzeigen."
],
"%(length)s of %(most)s characters": [
"%(length)s von %(most)s Zeichen"
],
"%(minutes)s min left": [
"noch %(minutes)s min"
],
"%(missing)s missing": [
"%(missing)s fehlen"
],
"%(place)s of %(total)s ids": [
"%(place)s von %(total)s Ids"
],
"%(rows)s rows a second": [
"%(rows)s Zeilen je Sekunde"
],
"%(seconds)s s left": [
"noch %(seconds)s s"
],
"%(utc)s · shown in %(zone)s": [
"%(utc)s · angezeigt in %(zone)s"
],
"(without a name)": [
"(ohne Namen)"
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
"Address": [
"Adresse"
],
"App version": [
"App-Version"
],
"As shown on devices in %(language)s.": [
"Wie auf Geräten in %(language)s."
],
"At most ten.": [
"Höchstens zehn."
],
"Attribute": [
"Attribut"
],
"Attributes and tags": [
"Attribute und Tags"
],
"Attributes that are not taken: %(names)s.": [
"Attribute, die nicht übernommen werden: %(names)s."
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
"Column %(column)s contains": [
"Spalte %(column)s enthält"
],
"Column %(place)s": [
"Spalte %(place)s"
],
"Comparison": [
"Vergleich"
],
"Continue": [
"Weiter"
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
"Dry run: nothing is stored.": [
"Probelauf: Nichts wird gespeichert."
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
"Found in the first rows, and not taken: %(names)s.": [
"In den ersten Zeilen gefunden und nicht übernommen: %(names)s."
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
"Import": [
"Importieren"
],
"Import “%(file)s” into the channel “%(channel)s”?": [
"„%(file)s“ in den Kanal „%(channel)s“ importieren?"
],
"Importing…": [
"Import läuft…"
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
"Leave empty for all.": [
"Leer lassen für alle."
],
"Line": [
"Zeile"
],
"Line %(line)s": [
"Zeile %(line)s"
],
"Line %(line)s, column %(column)s: This is not %(encoding)s. Choose another encoding above.": [
"Zeile %(line)s, Spalte %(column)s: Das ist nicht %(encoding)s. Wählen Sie oben eine andere Zeichenkodierung."
],
"Line %(line)s: The row that begins here is too long.": [
"Zeile %(line)s: Die Zeile, die hier beginnt, ist zu lang."
],
"Matches": [
"Erfüllt"
],
"Names, with commas between.": [
"Namen, durch Kommas getrennt."
],
"Next try in %(seconds)s s.": [
"Nächster Versuch in %(seconds)s s."
],
"No longer exists": [
"Gibt es nicht mehr"
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
"Perhaps a double quote at the beginning of a field does not end.": [
"Vielleicht endet ein Anführungszeichen am Anfang eines Feldes nicht."
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
"Rows": [
"Zeilen"
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
"Selected: copy it now": [
"Markiert: jetzt kopieren"
],
"Sign in again in another tab.": [
"Melden Sie sich in einem anderen Tab wieder an."
],
"Stopped before line %(line)s. The rows before it are imported.": [
"Vor Zeile %(line)s angehalten. Die Zeilen davor sind importiert."
],
"Stopping after this part…": [
"Hält nach diesem Teil an…"
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
"The channel no longer exists.": [
"Den Kanal gibt es nicht mehr."
],
"The column has no ids.": [
"Die Spalte enthält keine Ids."
],
"The dry run has ended. Nothing was stored.": [
"Der Probelauf ist beendet. Nichts wurde gespeichert."
],
"The dry run was cancelled.": [
"Der Probelauf wurde abgebrochen."
],
"The file cannot be read any more. Choose it again.": [
"Die Datei kann nicht mehr gelesen werden. Wählen Sie sie noch einmal aus."
],
"The file has more than %(most)s MB.": [
"Die Datei hat mehr als %(most)s MB."
],
"The file has no rows.": [
"Die Datei hat keine Zeilen."
],
"The file is empty.": [
"Die Datei ist leer."
],
"The file is imported.": [
"Die Datei ist importiert."
],
"The file is not %(encoding)s. Choose another encoding above.": [
"Die Datei ist nicht %(encoding)s. Wählen Sie oben eine andere Zeichenkodierung."
],
"The file is too large.": [
"Die Datei ist zu groß."
],
"The import failed. Reload the page.": [
"Der Import ist fehlgeschlagen. Laden Sie die Seite neu."
],
"The import of “%(name)s” stopped before line %(line)s (%(percent)s %): %(counts)s. To go on, choose the same file.": [
"Der Import von „%(name)s“ hielt vor Zeile %(line)s an (%(percent)s %): %(counts)s. Um fortzufahren, wählen Sie dieselbe Datei."
],
"The preview could not be loaded. Reload the page.": [
"Die Vorschau ließ sich nicht laden. Laden Sie die Seite neu."
],
"The service cannot be reached.": [
"Der Dienst ist nicht erreichbar."
],
"The service cannot be reached. Press the button to go on.": [
"Der Dienst ist nicht erreichbar. Drücken Sie die Schaltfläche, um fortzufahren."
],
"The service could not be reached. The next change retries.": [
"Der Dienst war nicht erreichbar. Die nächste Änderung versucht es erneut."
],
"The service did not respond. Your input is kept. The next change retries.": [
"Der Dienst hat nicht geantwortet. Ihre Eingabe bleibt erhalten. Die nächste Änderung versucht es erneut."
],
"The service responded with %(status)s.": [
"Der Dienst antwortete mit %(status)s."
],
"The upload failed. Try again.": [
"Das Hochladen ist fehlgeschlagen. Versuchen Sie es erneut."
],
"This file is compressed. Decompress it first.": [
"Diese Datei ist komprimiert. Entpacken Sie sie zuerst."
],
"This file is imported up to line %(line)s.": [
"Diese Datei ist bis Zeile %(line)s importiert."
],
"This is a workbook or an archive. Save the table as “CSV UTF-8”.": [
"Das ist eine Arbeitsmappe oder ein Archiv. Speichern Sie die Tabelle als „CSV UTF-8“."
],
"Time zone": [
"Zeitzone"
],
"Times": [
"Zeiten"
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
"You are signed out, or may no longer import. Sign in, reload this page, and choose the file again.": [
"Sie sind abgemeldet oder dürfen nicht mehr importieren. Melden Sie sich an, laden Sie diese Seite neu und wählen Sie die Datei noch einmal aus."
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
"and %(count)s more": [
"und %(count)s weitere"
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
"unzustellbar"
],
"contains": [
"enthält"
],
"created": [
"angelegt"
],
"created %(day)s": [
"angelegt %(day)s"
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
"is sent as written, because the notification is not personalized.": [
"wird wie geschrieben gesendet, weil die Benachrichtigung nicht personalisiert ist.",
"werden wie geschrieben gesendet, weil die Benachrichtigung nicht personalisiert ist."
],
"is set": [
"ist gesetzt"
],
"its id": [
"ihre Id"
],
"last seen %(day)s": [
"zuletzt gesehen %(day)s"
],
"line %(line)s": [
"Zeile %(line)s"
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
"number": [
"Zahl"
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
"refused": [
"abgelehnt"
],
"starts with": [
"beginnt mit"
],
"text": [
"Text"
],
"the last": [
"der letzte"
],
"unchanged": [
"unverändert"
],
"updated": [
"geändert"
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
],
"“%(name)s” was imported: %(counts)s.": [
"„%(name)s“ wurde importiert: %(counts)s."
]
};
