"""Checks a source by its syntax tree: every call of nki, nki.isa, nki.language and of a tensor's methods against
the table of signatures, every name of these modules against what they document, and only the Python that NKI's
compiler knows inside functions.
"""

import ast

import signatures

# What NKI's language guide (nki/get-started/nki-language-guide.rst) lists, as far as sources need it.
ALLOWED = (
    ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.For, ast.If, ast.Assert, ast.Expr, ast.Pass,
    ast.Call, ast.keyword, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Constant, ast.Tuple, ast.List,
    ast.BinOp, ast.UnaryOp, ast.Compare, ast.BoolOp, ast.IfExp, ast.operator, ast.unaryop, ast.cmpop, ast.boolop,
    ast.expr_context,
)  # fmt: skip
BUILTINS = {"range", "min", "max"}


def _problems_of_call(name, signature, node):
    if any(k.arg is None for k in node.keywords) or any(isinstance(a, ast.Starred) for a in node.args):
        return [f"{name} is called with * or **"]
    if len(node.args) > len(signature.all):
        return [f"{name} is called with {len(node.args)} positional arguments"]
    given = list(signature.all[: len(node.args)]) + [k.arg for k in node.keywords]
    problems = [f"{name} has no parameter {g}" for g in given if g not in signature.all]
    problems += [f"{name} gets {g} twice" for g in set(given) if given.count(g) > 1]
    return problems + [f"{name} lacks {r}" for r in signature.required if r not in given]


def _dotted(node):
    if isinstance(node, ast.Name):
        return (node.id,)
    if isinstance(node, ast.Attribute) and (base := _dotted(node.value)):
        return (*base, node.attr)
    return ()


def _problems_of_name(path):
    match path:
        case ("nl", "tile_size", size):
            return [] if size in signatures.TILE_SIZES else [f"nl.tile_size.{size} is not documented"]
        case ("nl", name, *_):
            known = name in signatures.LANGUAGE_NAMES or name in signatures.LANGUAGE
            return [] if known else [f"nl.{name} is not documented"]
        case ("nisa", enum, member):
            known = member in signatures.ISA_ENUMS.get(enum, ())
            return [] if known else [f"nisa.{enum}.{member} is not documented"]
        case ("nisa", name):
            known = name in signatures.ISA or name in signatures.ISA_ENUMS
            return [] if known else [f"nisa.{name} is not documented"]
        case ("nki", name):
            return [] if name in signatures.NKI else [f"nki.{name} is not documented"]
    return []


def _problems_of_function(function, functions):
    """Of one that NKI's compiler reads."""
    problems = []
    for node in ast.walk(function):
        if not isinstance(node, ALLOWED):
            problems.append(f"{function.name} uses {type(node).__name__}")
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            if name in functions:
                own = functions[name].args
                names = [a.arg for a in own.args]
                bare = len(names) - len(own.defaults)
                signature = signatures.Signature(tuple(names[:bare]), tuple(names[bare:]))
                problems += _problems_of_call(name, signature, node)
            elif name not in BUILTINS:
                problems.append(f"{function.name} calls {name}")
    return problems


def problems(source):
    """What is wrong with the source, as a list of sentences."""
    tree = ast.parse(source)
    compile(tree, "<emitted>", "exec")
    functions = {f.name: f for f in tree.body if isinstance(f, ast.FunctionDef)}
    found = []
    for name, function in functions.items():
        if name != "reference":  # which is NumPy
            found += _problems_of_function(function, functions)
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(parents[node], ast.Attribute):
            found += _problems_of_name(_dotted(node))
        if not isinstance(node, ast.Call):
            continue
        match _dotted(node.func):
            case ("nisa", name) if name in signatures.ISA:
                found += _problems_of_call(f"nisa.{name}", signatures.ISA[name], node)
            case ("nl", name):
                signature = signatures.LANGUAGE.get(name)
                found += _problems_of_call(f"nl.{name}", signature, node) if signature else [f"nl.{name} is called"]
            case _:
                method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
                if method in signatures.TENSOR:
                    found += _problems_of_call(f".{method}", signatures.TENSOR[method], node)
    return found
