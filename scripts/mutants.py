#!/usr/bin/env python3
"""Runs mutation tests: applies the seeded faults of tests/mutants/mutants.toml one by one to a copy
of the checkout, rebuilds, and runs the tests up to the first that fails. See scripts/mutants.sh for
its use."""
import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
import tomllib

TABLE = 'tests/mutants/mutants.toml'
PLACE = 'build/mutants'
SOURCE, BUILD, RESULTS = (f'{PLACE}/{name}' for name in ('source', 'build', 'results.json'))
MOST_SURVIVORS = 0.04  # share of all faults


def faults():
    with open(TABLE, 'rb') as f:
        return tomllib.load(f)


def misplaced(table):
    for name, fault in table.items():
        with open(fault['file']) as f:
            times = f.read().count(fault['find'])
        if times != 1:
            yield f'{name}: its text stands {times} times in {fault["file"]}, not once'


def key(fault):
    return hashlib.sha256(json.dumps(fault, sort_keys=True).encode()).hexdigest()


def load_results():
    try:
        with open(RESULTS) as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def save_results(results):
    with open(RESULTS + '.new', 'w') as f:
        json.dump(results, f, indent=1, sort_keys=True)
    os.replace(RESULTS + '.new', RESULTS)


def run(command, limit=3600, **more):
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=limit, **more)
    except subprocess.TimeoutExpired:
        return None


def must(command):
    done = run(command)
    if done is None or done.returncode:
        sys.exit(f'mutants: {" ".join(command)}:\n{(done.stdout + done.stderr)[-3000:] if done else "too long"}')


def copy_checkout():
    """Copies the tracked files of the checkout; unchanged files keep their times."""
    os.makedirs(SOURCE, exist_ok=True)
    files = subprocess.run(['git', 'ls-files', '-z'], check=True, capture_output=True).stdout
    names = set(filter(None, files.decode().split('\0')))
    for folder, _, found in os.walk(SOURCE):
        for name in found:
            path = os.path.join(folder, name)
            if os.path.relpath(path, SOURCE) not in names:
                os.unlink(path)  # is no longer tracked
    for name in names:
        put(name, read(name))
        os.chmod(f'{SOURCE}/{name}', os.stat(name).st_mode)


def read(name):
    with open(name, 'rb') as f:
        return f.read()


def put(name, content):
    path = f'{SOURCE}/{name}'
    if os.path.exists(path) and read(path) == content:
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as f:
        f.write(content)


def build():
    return run(['cmake', '--build', BUILD, '--parallel', str(os.cpu_count())])


def first_failure(arguments):
    """Returns the first test of a selection that fails; None: all pass."""
    done = run(['ctest', '--test-dir', BUILD, '--stop-on-failure', '--timeout', '600', *arguments],
               env=dict(os.environ, TENON_CACHE='off'))
    if done is None:
        return 'too long'
    failed = [line.split()[2] for line in done.stdout.splitlines()
              if line.lstrip()[:1].isdigit() and ('(Failed)' in line or '(Timeout)' in line or
                                                  '(SEGFAULT)' in line or 'Exception' in line)]
    return failed[0] if failed else None if done.returncode == 0 else 'ctest'


def first_failure_of_all():
    return first_failure(['-LE', 'long|source', '--parallel', str(os.cpu_count())])


def verdict(fault):
    with open(fault['file']) as f:
        text = f.read()
    put(fault['file'], text.replace(fault['find'], fault['replace']).encode())
    try:
        made = build()
        if made is None or made.returncode:
            return 'does not build'
        near = '|'.join(name.replace('.', r'\.') for name in fault['near'].split())
        return first_failure(['-R', f'^({near})$']) or first_failure_of_all() or 'survives'
    finally:
        put(fault['file'], text.encode())


def python():
    """Returns the Python interpreter of the tests."""
    path = os.environ.get('TENON_PYTHON') or os.path.abspath('build/venv/bin/python')
    if not os.path.exists(path):
        sys.exit('mutants: no packages for tests: run scripts/setup.sh --tests first')
    return path


def prepare():
    os.makedirs(PLACE, exist_ok=True)
    copy_checkout()
    must(['cmake', '-S', SOURCE, '-B', BUILD, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Debug',
          '-DTENON_VERIFY=ON', '-DTENON_TESTS=ON',
          f'-DTENON_PYTHON={python()}'])
    made = build()
    if made is None or made.returncode:
        sys.exit('mutants: the checkout does not build:\n' + (made.stdout[-3000:] if made else ''))


def report(table, results):
    known = {n: results[key(f)] for n, f in table.items() if key(f) in results}
    for name, result in known.items():
        print(f'{name:45} {result}')
    survivors = [n for n, r in known.items() if r in ('survives', 'does not build')]
    caught = len(known) - len(survivors)
    print(f'{caught} of {len(known)} faults are caught; {len(table) - len(known)} have no result')
    return len(survivors) <= MOST_SURVIVORS * len(table)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('names', nargs='*')
    p.add_argument('--fresh', action='store_true')
    p.add_argument('--check', action='store_true')
    options = p.parse_args()
    table = faults()
    wrong = list(misplaced(table)) + [f'no fault {n}' for n in options.names if n not in table]
    if wrong or options.check:
        print('\n'.join(wrong) or f'{len(table)} faults')
        return not wrong
    results = {} if options.fresh else load_results()
    if options.names:
        results = {k: v for k, v in results.items()
                   if k not in {key(table[n]) for n in options.names}}
    prepare()
    wanted = options.names or table
    if wanted is table and any(key(fault) not in results for fault in table.values()):
        failed = first_failure_of_all()
        if failed:
            sys.exit(f'mutants: {failed} fails without any fault')
    for number, (name, fault) in enumerate(table.items(), 1):
        if key(fault) in results or name not in wanted:
            continue
        begin = time.monotonic()
        print(f'[{number}/{len(table)}] {name} ... ', end='', flush=True)
        results[key(fault)] = verdict(fault)
        save_results(results)
        print(f'{results[key(fault)]} ({time.monotonic() - begin:.0f} s)', flush=True)
    return report(table, results)


if __name__ == '__main__':
    sys.exit(0 if main() else 1)
