# Wrong: makes the suite green by taking the failing tests out of it.
set -eu
sed -i -e 's/def test_put_again/def put_again/' -e 's/def test_delete_and/def delete_and/' \
  -e 's/def test_a_shorter/def a_shorter/' tests/test_expiry.py
python3 -B -m unittest discover -s tests -t .
