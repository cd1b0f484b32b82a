# Wrong: reads everything, finds the cause, changes nothing.
ls -R
git log --stat
cat expiring_cache/*.py tests/*.py
python3 -B -m unittest discover -s tests -t .
echo "_purge removes a key by a deadline that no longer holds"
