"""The page of a channel's prompt: its options, a preview, and what visitors did."""

from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from typing_extensions import override

from channels_app.admin.tabs import SettingsTab
from channels_app.console.shared_forms import SharedForm
from channels_app.models import PromptKind
from channels_app.selectors import prompt_figures
from channels_app.services import channel_set_prompt
from pushsvc.common.http.origin import own_origin
from pushsvc.common.texts import later

_DAYS: Final = 30
_KINDS: Final = {
    PromptKind.SLIDE_IN.value: later("Slide-in: a small dialog at the bottom of the page"),
    PromptKind.BELL.value: later("Bell: a round button that opens the dialog"),
    PromptKind.CATEGORIES.value: later("Categories: a slide-in with the channel's categories"),
    PromptKind.BUTTON.value: later("Button: in an element of the page"),
}
_SCHEMES: Final = {
    "auto": later("As the visitor prefers"),
    "light": later("Light"),
    "dark": later("Dark"),
}
_TEXTS: Final = ("title", "body", "allow", "later")
# Fields, with the names that prompt.mjs has for them.
_RULES: Final = {
    "kind": "kind",
    "after_pages": "afterPages",
    "after_seconds": "afterSeconds",
    "again_after_days": "againAfterDays",
    "max_refusals": "maxRefusals",
    "scheme": "scheme",
}
_COLORS: Final = {
    "accent": "accent",
    "accent_text": "accentText",
    "background": "background",
    "text": "text",
}


def _number(label: str, least: int, most: int, initial: int) -> forms.IntegerField:
    return forms.IntegerField(label=label, min_value=least, max_value=most, initial=initial)


def _text(label: str, most: int) -> forms.CharField:
    return forms.CharField(
        label=label,
        max_length=most,
        required=False,
        help_text=later("Empty: the prompt's own text."),
    )


def _colour(label: str) -> forms.RegexField:
    return forms.RegexField(
        r"^#[0-9a-fA-F]{6}$",
        label=label,
        required=False,
        help_text=later("Such as #1f4fd1. Empty: the prompt's own color in each scheme."),
        error_messages={"invalid": later("Enter a color such as #1f4fd1.")},
    )


class PromptForm(SharedForm):
    """The options of a prompt, as `Channel.prompt` has them."""

    audited_as = dict.fromkeys([*_RULES, *_COLORS, *_TEXTS, "is_on", "target", "lang"], ("prompt",))

    is_on = forms.BooleanField(
        label=later("Show a prompt on sites that use these options"), required=False, initial=True
    )
    kind = forms.ChoiceField(label=later("Kind"), choices=list(_KINDS.items()))
    target = forms.CharField(
        label=later("Element to add a button to"),
        max_length=200,
        required=False,
        help_text=later("A CSS selector, such as #newsletter. Only for the kind “Button”."),
    )
    after_pages = _number(later("First page view that shows it"), 1, 100, 1)
    after_seconds = _number(later("Seconds on the page before it appears"), 0, 3600, 0)
    again_after_days = _number(later("Days after a refusal before it appears again"), 1, 365, 30)
    max_refusals = _number(later("Refusals after which it never appears again"), 1, 20, 3)
    scheme = forms.ChoiceField(label=later("Color scheme"), choices=list(_SCHEMES.items()))
    accent = _colour(later("Color of the button"))
    accent_text = _colour(later("Color of the button's text"))
    background = _colour(later("Background"))
    text = _colour(later("Color of the text"))
    lang = forms.RegexField(
        r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        label=later("Language of the texts"),
        initial="en",
        max_length=35,
        error_messages={"invalid": later("Enter a language tag such as en or pt-BR.")},
        help_text=later("Visitors with another language see the prompt's own texts."),
    )
    title = _text(later("Title"), 100)
    body = _text(later("Text"), 255)
    allow = _text(later("Button that accepts"), 50)
    later = _text(later("Button that refuses"), 50)

    @override
    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = self.cleaned_data
        if given.get("kind") == PromptKind.BUTTON and not given.get("target"):
            self.add_error("target", gettext("A button needs the element that it is added to."))
        return given

    @property
    def options(self) -> dict[str, Any]:
        """For prompt.mjs."""
        given = self.cleaned_data
        texts = _filled(given, {name: name for name in _TEXTS})
        colors = _filled(given, _COLORS)
        return (
            {theirs: given[name] for name, theirs in _RULES.items()}
            | ({"target": given["target"]} if given["kind"] == PromptKind.BUTTON else {})
            | ({"texts": {given["lang"]: texts}} if texts else {})
            | ({"colors": colors} if colors else {})
        )

    @classmethod
    def of(cls, options: dict[str, Any] | None, data: QueryDict | None = None) -> "PromptForm":
        """The form with the channel's `prompt`."""
        if options is None:
            return cls(data)
        colors = options.get("colors", {})
        [(lang, texts)] = options.get("texts", {"en": {}}).items()
        return cls(
            data,
            initial={
                "is_on": options["isOn"],
                "target": options.get("target", ""),
                "lang": lang,
                **{name: options[theirs] for name, theirs in _RULES.items()},
                **{name: colors.get(theirs, "") for name, theirs in _COLORS.items()},
                **texts,
            },
        )


def _filled(given: dict[str, Any], names: dict[str, str]) -> dict[str, str]:
    """The values that are not empty, by the names of prompt.mjs."""
    return {theirs: given[name] for name, theirs in names.items() if given[name]}


class PromptPage(SettingsTab):
    title = later("Prompt")
    template_name = "console/channels/prompt.html"
    tab = "channel_prompt"

    @override
    def accept(self, form: PromptForm) -> HttpResponseBase:
        channel_set_prompt(
            channel_id=self.channel.pk, is_on=form.cleaned_data["is_on"], options=form.options
        )
        return self.back(gettext("The prompt was saved. Sites show it within five minutes."))

    @override
    def make_form(self, data: QueryDict | None = None) -> PromptForm:
        return PromptForm.of(self.channel.prompt, data)

    @override
    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(
            base_url=own_origin(self.request),
            prompts=prompt_figures(self.channel, days=_DAYS),
            days=_DAYS,
            **kwargs,
        )
