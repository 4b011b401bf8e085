// An editor of YAML: lines with numbers, colours by meaning, its own undo, the place of a mistake. Tab leaves it.
import { defaultKeymap, history, isolateHistory, redo, undo } from '@codemirror/commands';
import { yaml } from '@codemirror/lang-yaml';
import { syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, StateEffect, StateField, Transaction } from '@codemirror/state';
import { Decoration, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { classHighlighter } from '@lezer/highlight';

const wrong = StateEffect.define(); // {line, column} as people count them, or null
const kWrongLine = Decoration.line({ class: 'wrong-line' });
const kWrongPart = Decoration.mark({ class: 'wrong' });

function marks(doc, place) {
  if (!(place?.line >= 1)) return Decoration.none;
  const line = doc.line(Math.min(place.line, doc.lines));
  const end = line.from + line.text.trimEnd().length;
  const from = line.from + Math.max(0, Math.min((place.column ?? 1) - 1, end - line.from - 1));
  return Decoration.set([kWrongLine.range(line.from), ...(from < end ? [kWrongPart.range(from, end)] : [])]);
}

const mistake = StateField.define({
  create: () => Decoration.none,
  update: (shown, { docChanged, changes, state, effects }) => effects.filter((e) => e.is(wrong)).reduce((_, e) => marks(state.doc, e.value), docChanged ? shown.map(changes) : shown),
  provide: (field) => [
    EditorView.decorations.from(field),
    EditorView.contentAttributes.from(field, (shown) => (shown.size ? { 'aria-invalid': 'true' } : {})),
  ],
});

/** What to replace in one text so that it becomes another. */
export function difference(before, after) {
  const most = Math.min(before.length, after.length);
  let same = 0;
  while (same < most && before[same] === after[same]) same += 1;
  let tail = 0;
  while (tail < most - same && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  return { from: same, to: before.length - tail, insert: after.slice(same, after.length - tail) };
}

/** `attributes` of the text. Keys: `apply` for Ctrl+Enter; `undo` and `redo` where the editor has nothing of its own to take back. */
export function yamlEditor(place, attributes, keys) {
  const past = new Compartment();
  const key = (name, run) => ({ key: name, run: (view) => { run(view); return true; } });
  const again = (view) => redo(view) || keys.redo();
  const view = new EditorView({
    parent: place,
    state: EditorState.create({
      extensions: [
        keymap.of([key('Mod-Enter', keys.apply), key('Mod-z', (target) => undo(target) || keys.undo()), key('Mod-Shift-z', again), key('Mod-y', again), ...defaultKeymap]),
        past.of(history()), lineNumbers(), EditorView.lineWrapping, yaml(), syntaxHighlighting(classHighlighter), mistake, EditorView.contentAttributes.of(attributes),
      ],
    }),
  });
  const text = () => view.state.doc.toString();
  return {
    text,
    focused: () => view.hasFocus,
    /** Puts another text in its place, the cursor stays by what it was at. `kept`: the editor's undo brings the former one back. */
    replace(after, kept) {
      view.dispatch({ changes: difference(text(), after), effects: wrong.of(null), annotations: kept ? isolateHistory.of('full') : Transaction.addToHistory.of(false) });
      if (kept) return;
      view.dispatch({ effects: past.reconfigure([]) });
      view.dispatch({ effects: past.reconfigure(history()) });
    },
    /** Marks the place of a mistake and brings it into sight; null: there is none. */
    mark(at) {
      const from = marks(view.state.doc, at).iter().from;
      view.dispatch({ effects: at ? [wrong.of(at), EditorView.scrollIntoView(from)] : wrong.of(null) });
    },
  };
}
