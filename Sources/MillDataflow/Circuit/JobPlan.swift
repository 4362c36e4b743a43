package import MillBase
package import MillPlan

/// A job as workers run it: a live view, table or query, its stream plan, and an id that its nodes carry.
package struct JobPlan: Sendable {
    package var id: ObjectID
    package var name: String
    package var plan: StreamPlan

    package init(id: ObjectID, name: String, plan: StreamPlan) {
        self.id = id
        self.name = name
        self.plan = plan
    }
}
