#if Macros
  import Foundation
  import Holdfast
  import HoldfastMemoryStore
  import HoldfastStoreConformance
  import TestSupport
  import Testing

  /// The article *The same program four times*: its program, its counts, and each mistake with Holdfast.
  @Suite struct ComparisonTests {
    private static let article = "Sources/Holdfast/Holdfast.docc/Comparison.md"
    private typealias Dog = ComparedDog
    private typealias Walk = ComparedWalk

    @Test @MainActor func theProgramRuns() async throws {
      let folder = TemporaryFolder()
      let output = try await ComparedProgram().program(at: folder.file("dogs.sqlite"))
      #expect(output == ["998", "999", "1000", "Name has too few characters: the minimum is 1."])
    }

    // MARK: Counts

    /// The code blocks of a section, without empty lines and comments.
    private func lines(of section: String) throws -> [Substring] {
      let text = try Repository.text(Self.article)
      let part = try #require(text.components(separatedBy: "\n## \(section)\n").dropFirst().first).components(separatedBy: "\n## ")[0]
      let blocks = part.components(separatedBy: "```").enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
      return blocks.flatMap { $0.split(separator: "\n").dropFirst() }
    }

    private func row(_ title: String) throws -> [String] {
      let line = try #require(Repository.text(Self.article).split(separator: "\n").first { $0.hasPrefix("| \(title) |") })
      return line.split(separator: "|").dropFirst().map { $0.trimmingCharacters(in: .whitespaces) }.filter { !$0.isEmpty }
    }

    @Test func theCountsAreThoseOfTheCode() throws {
      let sections = try ["Core Data", "SwiftData", "GRDB", "Holdfast"].map(lines)
      let counts = sections.map { "\($0.count)" }, row = try row("lines")
      #expect(row == counts)
      // Where the entity is declared: before the program begins, and in GRDB also in the migration.
      let declarations = sections.map { lines in
        let end = lines.firstIndex {
          $0.contains("migrate(database)") || $0.contains("PersistentContainer(") || $0.contains("ModelContainer(")
        }
        return lines[..<(end ?? lines.endIndex)].joined(separator: "\n").matches(of: /\bminutes\b/.wordBoundaryKind(.simple)).count
      }
      let names = try self.row("times that the name `minutes` is written to declare it")
      #expect(names == declarations.map { "\($0)" })
    }

    // MARK: Mistakes

    /// When Holdfast finds each mistake, as the last column of the article's table has it.
    private func column() throws -> [Int: String] {
      let rows = try Repository.text(Self.article).matches(of: /\n\| (\d+) \|.*\| (\w+) \|(?=\n)/)
      return Dictionary(uniqueKeysWithValues: rows.compactMap { row in Int(row.1).map { ($0, String(row.2)) } })
    }

    private func mistakes(found when: String) throws -> Set<Int> { Set(try column().filter { $0.value == when }.keys) }

    /// Compiles a source. Returns the numbers of the lines with errors or warnings, which end with `// NUMBER`. An error
    /// in the code of a macro is at the end of its class.
    private func reported(_ source: String, _ options: String...) throws -> Set<Int> {
      let folder = TemporaryFolder()
      try folder.write(source, to: "Mistakes.swift")
      let build = URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent().path
      let output = try Program.run(
        "/usr/bin/env",
        ["swiftc", "-swift-version", "6", "-parse-as-library", "-D", "Macros", "-I", build + "/Modules"]
          + ["-load-plugin-executable", build + "/HoldfastMacrosPlugin-tool#HoldfastMacrosPlugin", folder.file("Mistakes.swift")] + options
      ).errors
      let lines = source.split(separator: "\n", omittingEmptySubsequences: false)
      var found: Set<Int> = []
      for match in output.matches(of: /Mistakes\.swift:(\d+):\d+: (?:error:|warning:|note: expanded code) .*/) {
        let line = lines[(Int(match.1) ?? 1) - 1]
        let number = line.firstMatch(of: /\/\/ (\d+)$/).flatMap { Int($0.1) }
        if let number { found.insert(number) } else { Issue.record("\(line)\n\(match.0)") }
      }
      return found
    }

    private static let classes = #"""
      import Holdfast
      @Entity final class Dog: ManagedObject {
        @Attribute(.unique) var name: String
        @Relationship(deleteRule: .cascade, inverse: \Walk.dog) var walks: ToMany<Walk>
        var initial: Character? { name.first }
      }
      @Entity final class Walk: ManagedObject {
        var minutes = 0
        var dog: Dog?
      }

      """#

    @Test func theCompilerReportsTheMistakesThatItCan() throws {
      let types = #"""
        @Entity final class Owner: ManagedObject {
          var dogs: ToMany<Dog> // 10
        }
        @Entity final class Keeper: ManagedObject {
          @Relationship(inverse: \Walk.minutes) var walks: ToMany<Walk>
        } // 9
        @MainActor func mistakes(_ context: ManagedObjectContext, _ walk: Walk) throws {
          walk.mintes = 3 // 1
          _ = try context.fetch(Walk.self) { $0.mintes > 3 } // 2
          _ = try context.fetch(Walk.self) { $0.minutes > "30" } // 3
          walk.minutes = "40" // 4
          _ = try context.fetch(Walk.self, sortedBy: \.mintes) // 5
          _ = try context.fetch(Dog.self) { $0.name.uppercased() == "FIDO" } // 6
          _ = try context.fetch(Dog.self, sortedBy: \.walks.count) // 8
          _ = Dog(context: context) // 11
        }
        func background(_ container: PersistentContainer) async throws {
          try container.performBackgroundTask { context in try context.save() } // 16
        }
        func elsewhere(_ container: PersistentContainer) throws {
          try container.viewContext.save() // 15
        }
        """#
      let isolation = """
        func leak(_ container: PersistentContainer) async {
          await container.performBackgroundTask { context in
            let dog = Dog(context: context, name: "Fido")
            Task { dog.name = "Rex" } // 14
          }
        }
        """
      // Isolation is checked after all types are correct.
      let found = try reported(Self.classes + types, "-typecheck").union(reported(Self.classes + isolation, "-emit-sil", "-o", "/dev/null"))
      let expected = try mistakes(found: "compile")
      #expect(found == expected)
    }

    @Test func theCompilerReportsAnInverseThatPointsToAnotherClass() throws {
      let owner = #"""
        @Entity final class Owner: ManagedObject {
          @Relationship(inverse: \Walk.dog) var walks: ToMany<Walk>
        } // 1
        """#
      let found = try reported(Self.classes + owner, "-typecheck")
      #expect(found == [1])
    }

    @Test func openingTheStoreReportsWhatTheCompilerCannot() throws {
      let contents = MemoryStoreContents()
      do { _ = try PersistentContainer(for: Dog.self, Walk.self, store: .memory(contents: contents)) }
      #expect(throws: StoreError.self) { try PersistentContainer(for: ChangedDog.self, store: .memory(contents: contents)) }
      #expect(try mistakes(found: "start") == [20])
    }

    @Test func callsAndSavesReportTheRest() throws {
      func container() throws -> PersistentContainer {
        let container = try PersistentContainer(for: Dog.self, Walk.self, store: .memory())
        try container.withContext { context in
          _ = Dog(context: context, name: "Fido")
          try context.save()
        }
        return container
      }
      /// Changes the dog in two contexts, and saves both.
      func racing(_ change: (Dog) -> Void) throws {
        let container = try container(), (one, two) = (container.newContext(), container.newContext())
        let (mine, theirs) = (try #require(try one.fetchOne(Dog.self)), try #require(try two.fetchOne(Dog.self)))
        change(theirs)
        try two.save()
        mine.name = "Mine"
        try one.save()
      }
      #expect(throws: QueryError.self, "mistake 7") {
        try container().newContext().fetch(Dog.self) { $0.loudName == "FIDO" }
      }
      func insert(_ name: String) throws {
        let context = try container().newContext()
        _ = Dog(context: context, name: name)
        try context.save()
      }
      let runs: [Int: (code: PersistenceError.Code, run: () throws -> Void)] = [
        12: (.stringTooShort, { try insert("") }), 13: (.constraintConflict, { try insert("Fido") }),
        18: (.conflict, { try racing { $0.name = "Theirs" } }),
        19: (.conflict, { try racing { $0.managedObjectContext.delete($0) } }),
      ]
      for (number, (code, run)) in runs {
        #expect(throws: PersistenceError.self, "mistake \(number)") {
          do { try run() } catch let error as PersistenceError {
            #expect(error.code == code, "mistake \(number)")
            throw error
          }
        }
      }
      #expect(try Set(runs.keys).union([7]) == mistakes(found: "run"))
    }

    @Test(.ownThreads) func aRelationshipToAnotherContextsObjectTraps() async throws {
      let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
        let container = try PersistentContainer(for: ComparedDog.self, ComparedWalk.self, store: .memory())
        let (one, two) = (container.newContext(), container.newContext())
        ComparedWalk(context: one).dog = ComparedDog(context: two, name: "Fido")
      }
      let message = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
      #expect(message.contains("A relationship was set to an object of another context"))
      #expect(try mistakes(found: "crash") == [17])
      #expect(try column().count == 20 && mistakes(found: "never").isEmpty)
    }
  }

  @Entity(name: "Dog") final class ComparedDog: ManagedObject {
    @Attribute(.unique, .length(1...40)) var name: String
    @Relationship(deleteRule: .cascade, inverse: \ComparedWalk.dog) var walks: ToMany<ComparedWalk>
    var loudName: String { name.uppercased() }
  }
  @Entity(name: "Walk") final class ComparedWalk: ManagedObject {
    var minutes = 0
    var dog: ComparedDog?
  }
  @Entity(name: "Dog") final class ChangedDog: ManagedObject {
    @Attribute(.unique, .length(1...40)) var title: String
  }
#endif
