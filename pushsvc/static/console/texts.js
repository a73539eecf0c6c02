// Texts of scripts, and formats, in the reader's language. The translations are in
// texts/<language>.js, which .ci/texts.py makes; English needs no such file.
(() => {
  const { lang } = document.documentElement;
  const found = window.pushsvcTexts ?? {};
  const rules = new Intl.PluralRules(lang || "en");
  const forms = ["zero", "one", "two", "few", "many", "other"].filter((each) =>
    rules.resolvedOptions().pluralCategories.includes(each),
  );

  function filled(text, values) {
    return text.replace(/%\((\w+)\)s/g, (_, name) => values[name]);
  }

  // `values`: by their names, what stands in the text as %(name)s.
  window.translated = (text, values = {}) => filled(found[text]?.[0] ?? text, values);
  // The form of the language for `count`; both texts may contain it as %(count)s.
  window.counted = (one, several, count, values = {}) => {
    const form = found[one]?.[forms.indexOf(rules.select(count))];
    return filled(form ?? (count === 1 ? one : several), {
      count: window.pushsvcNumber(count),
      ...values,
    });
  };
  // For Intl: with Western digits in every language, as the pages have them.
  window.pushsvcLocale = lang && lang !== "en" ? `${lang}-u-nu-latn` : "en-GB";
  window.pushsvcNumber = (number) => number.toLocaleString(window.pushsvcLocale);
})();
