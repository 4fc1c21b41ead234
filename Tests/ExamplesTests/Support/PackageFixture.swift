/// A small index with known answers: two libraries that need each other, alternatives, virtual packages, and what no index
/// should have.
enum PackageFixture {
  static let text = """
    # A comment is no field.
    Package: editor
    Version: 1.0-1
    Section: editors
    Installed-Size: 300
    Maintainer: Ann <ann@example.org>
    Depends: libtext (>= 2), spell | spell-lite [amd64],
     mail-agent
    Description: edits text: all of it
     Depends: this line belongs to the description.

    Package: libtext
    Version: 2.1
    Section: libs
    Installed-Size: 120
    Maintainer: Bob <bob@example.org>
    Pre-Depends: libbase (>= 1)

    Package: libbase
    Version: 1.4
    Section: libs
    Installed-Size: 900
    Maintainer: Bob <bob@example.org>
    Depends: libtext:any


    Package: spell
    Version: 5
    Section: text
    Installed-Size: 50
    Maintainer: Ann <ann@example.org>
    Depends: libbase

    Package: postman
    Version: 3
    Section: mail
    Installed-Size: 700
    Maintainer: Cleo <cleo@example.org>
    Depends: libbase
    Provides: mail-agent (= 2.0)

    Package: parrot
    Version: 3
    Section: mail
    Installed-Size: 40
    Maintainer: Bob <bob@example.org>
    Provides: mail-agent, talker

    Package: game
    Version: 7
    Section: games
    Installed-Size: 5000
    Maintainer: Cleo <cleo@example.org>
    Depends: talker

    Package: spell
    Version: 4
    Depends: game

    Section: a stanza without a package

    Package: alone
    Version: 0
    Installed-Size: unknown
    """
}
